package supply.executor

import org.apache.spark.{TaskKilled, TaskKilledException}

/**
 * How a task ends that is to be tried again without counting as a failure of Spark's: as one that
 * was killed. The driver knows it by the mark.
 */
private[supply] abstract class UncountedEnd(mark: String) {

  def end(message: String): Nothing = throw new TaskKilledException(mark + message)

  /** Its message, where a task has ended so. */
  def message(reason: TaskKilled): Option[String] =
    if (reason.reason.startsWith(mark)) Some(reason.reason.stripPrefix(mark)) else None
}
