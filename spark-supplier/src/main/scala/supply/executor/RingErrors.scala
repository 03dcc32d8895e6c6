package supply.executor

import supply.core.{ConfigException, Deadline}
import supply.pair.{BlockCount, Pair}

/** Says how large a ring must be so that all elements of a rank can be resident. */
private[supply] object RingErrors {
  def exception(pair: Pair, settings: TaskSettings, planned: PlannedEpoch): ConfigException = {
    // The rank waits meanwhile, and must receive this message before its own timeout.
    val deadline = new Deadline(settings.user.timeout / 2)
    val count = new BlockCount(pair.blockBytes, settings.schema, settings.blockElements)
    planned.partitions.takeWhile(_ => !deadline.passed).foreach(add(_, count, deadline))
    val bytes = pair.ringBytesFor(count.blocks)
    val least = if (deadline.passed) "more than " else ""
    new ConfigException(
      s"${pair.name}: the rank's elements cannot stay resident (--resident): they need $least$bytes bytes of the " +
        s"mapped file, and there are ${pair.ringBytes}: set ring=$bytes block=${pair.blockBytes} in " +
        s"mapped-files.conf (${pair.paths.configLine}; supply-run: --ring $bytes), or leave --resident out")
  }

  private def add(partition: PlannedPartition, count: BlockCount, deadline: Deadline): Unit = {
    partition.open(cursor => while (!deadline.passed && cursor.next()) count.append(cursor))
    count.close()
  }
}
