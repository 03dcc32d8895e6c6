package org.apache.spark.supply

import org.apache.spark.SparkContext
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.util.ShutdownHookManager

/** What Spark knows but does not tell outside its own package. */
object SparkInternals {

  /** Tasks that the executors known at this moment can run at the same time. */
  def concurrentTasks(sc: SparkContext): Int =
    sc.maxNumConcurrentTasks(sc.resourceProfileManager.resourceProfileFromId(ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID))

  /** Runs `body`; if the JVM is asked to end meanwhile (SIGTERM, Ctrl-C), runs `ending` before Spark takes anything down. */
  def beforeShutdown[A](ending: () => Unit)(body: => A): A = {
    val hook = ShutdownHookManager.addShutdownHook(ShutdownHookManager.DEFAULT_SHUTDOWN_PRIORITY + 1)(ending)
    try body
    finally {
      ShutdownHookManager.removeShutdownHook(hook)
      ()
    }
  }
}
