package supply.driver

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDDPartition

import supply.core.DriverCalls
import supply.executor.{FoundResult, PinnedTask}
import supply.plan.Hostfile
import supply.protocol.Schema
import supply.results.OpenResults

/**
 * A result that `load()` has found on all ranks. `misplaced`: how a task says that it landed on a
 * wrong node.
 *
 * The files stay until [[release]] or the session's end, and not only while a DataFrame refers to
 * them: a garbage collection must not decide whether a later `load()` finds them.
 */
private[supply] final class LoadedResults(sc: SparkContext, hosts: Hostfile,
    val misplaced: DriverCalls, val name: String,
    val files: IndexedSeq[FoundResult], val schema: Schema) {
  def elements: Long = files.map(_.elements).sum

  def bytes: Long = files.map(_.bytes).sum

  /**
   * Removes the files by a job on the nodes, also those that other DataFrames of this result read.
   * Throws a SupplyException if a node does not answer.
   */
  def release(): Unit = if (!sc.isStopped) {
    val (places, found) = (hosts, files)
    NodeJob.run(sc, hosts, s"releasing the result '$name'", LoadedResults.timeout,
      seconds = LoadedResults.timeout) { _ =>
      found.filter(file => places.places(file.rank).isOn(PinnedTask.host)).foreach { file =>
        OpenResults.remove(file.path, file.generation)
      }
    }
    ()
  }
}

private[supply] object LoadedResults {
  private val timeout = 60.0

  /** Spark's partition of a result, on the driver. */
  trait Part {
    def loaded: LoadedResults
  }

  /** The results that an RDD reads, also through others, as far as Spark knows its origin. */
  def of(rdd: RDD[_]): Seq[LoadedResults] = {
    val seen = mutable.LinkedHashSet[RDD[_]](rdd)
    val open = mutable.Queue[RDD[_]](rdd)
    while (open.nonEmpty)
      open ++= open.dequeue().dependencies.map(_.rdd).filter(seen.add)
    seen.toSeq.flatMap(_.partitions).collect { case partition: DataSourceRDDPartition =>
      partition.inputPartitions.collect { case part: Part => part.loaded }
    }.flatten.distinct
  }
}
