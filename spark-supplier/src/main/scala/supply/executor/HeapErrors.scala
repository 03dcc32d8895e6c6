package supply.executor

import supply.core.SourceException
import supply.pair.Pair

/**
 * Says what to do where the elements that Spark holds at once do not fit into the executor's heap.
 */
private[supply] object HeapErrors {
  private final val MiB = 1L << 20

  /**
   * Without its cause: an executor that finds an OutOfMemoryError among a failure's causes ends,
   * and says nothing of ours.
   */
  def exception(pair: Pair, partition: Int, error: OutOfMemoryError): SourceException =
    new SourceException(
      s"${pair.name}: partition $partition does not fit into the executor's heap of " +
        s"${Runtime.getRuntime.maxMemory / MiB} MiB (${error.getMessage}): give the executors more memory (spark.executor.memory; " +
        "EXECUTOR_MEMORY of launch/submit-supplier), or the source more and smaller partitions (--partitions) and elements")
}
