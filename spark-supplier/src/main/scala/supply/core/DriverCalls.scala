package supply.core

/** How a task asks the driver. A module of the driver makes it, and the task carries it along. */
trait DriverCalls extends java.io.Serializable {

  /**
   * Returns the driver's answer. Throws a SparkException if none comes within spark.rpc.askTimeout,
   * or if nobody answers any more.
   */
  def ask[A](question: java.io.Serializable): A
}
