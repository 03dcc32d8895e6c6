package supply.sources.lmdb

import org.apache.spark.SparkEnv

/**
 * How many bytes of entries a walk passes before it maps the file anew.
 *
 * YARN counts all pages that a process has mapped as the container's memory, those of the database
 * file too, although they are the kernel's to drop; it would kill an executor in the middle of a
 * database that is larger than its container. So there nobody keeps more mapped than a window.
 * Elsewhere the file stays mapped: faulting its pages in anew takes a quarter of a task's time.
 */
object MappedWindow {

  /** What each task of an executor on YARN may have mapped, but for one larger element. */
  final val OnYarn: Long = 64L << 20

  def bytes: Long = if (Option(SparkEnv.get).exists(_.conf.get("spark.master", "") == "yarn"))
    OnYarn
  else Long.MaxValue
}
