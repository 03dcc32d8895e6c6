package supply.core

import org.apache.spark.SparkContext

/**
 * Runs the jobs of `body` as a group that can be cancelled, in place of any group of the thread. The
 * thread's job tags stay.
 */
private[supply] object JobGroup {
  private val Properties =
    Seq("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

  def apply[A](sc: SparkContext, group: String, description: String)(body: => A): A = {
    val before = Properties.map(name => name -> sc.getLocalProperty(name))
    // The interrupt wakes a task that waits for its rank.
    sc.setJobGroup(group, description, interruptOnCancel = true)
    try body
    catch {
      // When the waiting thread is interrupted, Spark leaves the job running.
      case e: InterruptedException =>
        sc.cancelJobGroup(group)
        throw e
    } finally before.foreach { case (name, value) => sc.setLocalProperty(name, value) }
  }
}
