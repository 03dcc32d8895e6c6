package supply.executor

/**
 * What one rank has received since it opened its pair. Elements and bytes of blocks are those of
 * all attempts of its task; partitions and times (in nanoseconds) are those of the last attempt.
 */
final case class TaskReport(
    rank: Int,
    host: String,
    partitions: Int,
    elements: Long,
    bytes: Long,
    nanos: Long,
    waitedForRank: Long,
    waitedForSource: Long)

object TaskReport {
  def nothing(rank: Int, host: String): TaskReport = TaskReport(rank, host, 0, 0, 0, 0, 0, 0)
}
