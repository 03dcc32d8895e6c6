package org.apache.spark.supply

import org.apache.spark.SparkConf
import org.apache.spark.util.Utils

/** What Spark itself says about its folders. */
object SparksLocalDirs {
  def of(settings: Map[String, String], environment: Map[String, String]): Seq[String] = {
    val conf = new SparkConf(false) {
      override private[spark] def getenv(name: String): String = environment.getOrElse(name, null)
    }
    Utils.getConfiguredLocalDirs(conf.setAll(settings)).toSeq
  }
}
