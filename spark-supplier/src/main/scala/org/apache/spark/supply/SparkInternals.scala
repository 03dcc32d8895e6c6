package org.apache.spark.supply

import org.apache.spark.SparkContext
import org.apache.spark.resource.ResourceProfile

/** What Spark knows but does not tell outside its own package. */
object SparkInternals {

  /** Tasks that the executors known at this moment can run at the same time. */
  def concurrentTasks(sc: SparkContext): Int =
    sc.maxNumConcurrentTasks(sc.resourceProfileManager.resourceProfileFromId(ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID))
}
