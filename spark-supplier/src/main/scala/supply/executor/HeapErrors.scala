package supply.executor

import supply.core.SourceException
import supply.pair.Pair

/**
 * Turns an OutOfMemoryError of Spark into an error that names the partition and the settings. Spark
 * itself would end the executor without a word about memory: docs/design/decisions.md.
 */
private[supply] object HeapErrors {
  private final val MiB = 1L << 20

  /** Without its cause: an executor that finds an OutOfMemoryError among the causes exits. */
  def exception(pair: Pair, partition: Int, error: OutOfMemoryError): SourceException =
    new SourceException(
      s"${pair.name}: partition $partition does not fit into the executor's heap of " +
        s"${Runtime.getRuntime.maxMemory / MiB} MiB (${error.getMessage}): give the executors more memory (spark.executor.memory; " +
        "EXECUTOR_MEMORY of launch/submit-supplier), or the source more and smaller partitions (--partitions) and elements")
}
