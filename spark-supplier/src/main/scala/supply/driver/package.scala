package supply

/**
 * A run or a stream, seen from the driver: placement, the pinned job, failures, progress, and what
 * Spark knows of executors. It imports executor, failure, what lies below them, and Spark's
 * internals (org.apache.spark.supply).
 */
package object driver
