package supply

/**
 * Notifies all ranks that Spark failed. Imports executor, what lies below it, and
 * org.apache.spark.supply.
 */
package object failure
