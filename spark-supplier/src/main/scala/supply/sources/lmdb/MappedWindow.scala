package supply.sources.lmdb

import org.apache.spark.SparkEnv

/**
 * How many bytes of entries a walk passes before it maps the file again. YARN counts all mapped
 * pages as memory of the container, even those that the kernel could drop, and would kill the
 * executor. So on YARN a walk maps no more than a window. Elsewhere the whole file stays mapped,
 * because faulting its pages in again takes a quarter of a task's time.
 */
object MappedWindow {
  /** The window of each task on YARN, in bytes. An element larger than it is mapped whole. */
  final val OnYarn: Long = 64L << 20

  def bytes: Long = if (Option(SparkEnv.get).exists(_.conf.get("spark.master", "") == "yarn"))
    OnYarn
  else Long.MaxValue
}
