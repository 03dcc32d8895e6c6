package supply

/** A source's schema and cursors over its elements. Imports core and protocol. */
package object data
