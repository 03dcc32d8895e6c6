package supply.executor

import supply.core.{ConfigException, Deadline}
import supply.pair.{BlockCount, Pair}

/** Says how large a ring has to be that all elements of a rank may stay in it. */
private[supply] object RingErrors {

  def exception(pair: Pair, settings: TaskSettings, planned: PlannedEpoch): ConfigException = {
    // The rank, which waits meanwhile, is to learn of this before its own limit has passed.
    val limit = new Deadline(settings.timeout / 2)
    val count = new BlockCount(pair.blockBytes, settings.schema, settings.blockElements)
    planned.partitions.takeWhile(_ => !limit.passed).foreach(add(_, count, limit))
    val bytes = pair.ringBytesFor(count.blocks)
    new ConfigException(
      s"${pair.name}: the rank's elements can not stay (--resident): they need ${if (limit.passed) "more than "
        else ""}" +
        s"$bytes bytes of the mapped file, and there are ${pair.ringBytes}: set ring=$bytes block=${pair.blockBytes} in " +
        s"mapped-files.conf (${pair.paths.configLine}), or leave --resident out")
  }

  private def add(partition: PlannedPartition, count: BlockCount, limit: Deadline): Unit = {
    val cursor = partition.open()
    try while (!limit.passed && cursor.next()) count.append(cursor)
    finally cursor.close()
    count.close()
  }
}
