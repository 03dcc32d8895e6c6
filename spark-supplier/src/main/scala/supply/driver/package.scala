package supply

/**
 * A run or a stream on the driver. Imports executor, failure, what lies below them, and
 * org.apache.spark.supply.
 */
package object driver
