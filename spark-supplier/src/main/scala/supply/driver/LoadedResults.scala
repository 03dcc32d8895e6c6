package supply.driver

import org.apache.spark.SparkContext

import supply.core.DriverCalls
import supply.executor.FoundResult
import supply.plan.Hostfile
import supply.protocol.Schema

/**
 * A result that `load()` has found on all ranks. The plans of its DataFrames refer to it. When no
 * plan does, the garbage collector's [[ReleaseResults]] removes the files. `misplaced`: how a task
 * says that it landed on a wrong node.
 */
private[supply] final class LoadedResults(sc: SparkContext, hosts: Hostfile,
    val misplaced: DriverCalls, val name: String,
    val files: IndexedSeq[FoundResult], val schema: Schema) {
  private val held = new ReleaseResults(sc, hosts, name, files)
  private val whenUnreachable = ReleaseResults.whenUnreachable(this, held)

  def elements: Long = files.map(_.elements).sum

  def bytes: Long = files.map(_.bytes).sum

  /** Removes the files, also those that other DataFrames of this result read. */
  def release(): Unit = {
    held.now()
    whenUnreachable.clean()
  }
}
