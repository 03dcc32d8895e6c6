package supply

/** The task's side of a pair. Imports core, protocol and data. */
package object pair
