package supply

/**
 * Notifies all ranks that Spark failed: FailureBroadcast runs a job on the driver, its
 * NodeFailureTask runs on each executor, and FailureSender writes to one pair. It imports executor,
 * what lies below it, and Spark's internals (org.apache.spark.supply).
 */
package object failure
