package supply.executor

import supply.core.SourceException
import supply.pair.Pair

/**
 * Turns an OutOfMemoryError of Spark, which holds some partitions in memory as a whole, into an
 * error that names the partition and the settings.
 *
 * Leaving it to Spark is not enough: the executor then dies (exit status 52; on YARN `kill %p`),
 * Spark repeats that on four executors, and the user and the ranks read "ExecutorLostFailure"
 * without a word about memory. So the task catches it, and on YARN the Supplier's executors (no
 * others) do not run `kill %p` (Submission).
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
