package supply

/** Spark's types and the formats of columns. Imports core and protocol. */
package object types
