package supply.task

import org.apache.spark.{TaskKilled, TaskKilledException}

/**
 * A task whose pair another attempt has held for the whole time limit. It ends without counting as a failure of Spark's, so that it is
 * tried again; the driver knows whether the other one still runs.
 */
private[task] object HeldPair {

  private final val Mark = "supply-held: "

  def end(message: String): Nothing = throw new TaskKilledException(Mark + message)

  /** Its message, where a task has ended so. */
  def message(reason: TaskKilled): Option[String] =
    if (reason.reason.startsWith(Mark)) Some(reason.reason.stripPrefix(Mark)) else None
}
