package supply.core

/** How a task asks the driver, which makes it and sends it along with the task. */
trait DriverCalls extends java.io.Serializable {
  /**
   * Returns the driver's answer. Throws a SparkException if nobody answers any more, and a
   * java.util.concurrent.TimeoutException if no answer comes within spark.rpc.askTimeout.
   */
  def ask[A](question: java.io.Serializable): A
}
