package supply

/** Notifies all ranks that Spark failed. Imports executor and what lies below it. */
package object failure
