package supply.api

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SQLExecution

import supply.core.ConfigException
import supply.rows.{EvenRows, ListLengths}
import supply.run.{RunOptions, RunPlan, SupplyJob, WaitingRanks}

/**
 * A DataFrame of `Supplier.run` of the Python package. Making it computes the stages in front of its
 * last one, once: [[supply]] uses them. Throws a SupplyException if it cannot be supplied.
 *
 * @param name what its caller calls it
 * @param repartition "auto": if its partitions give ranks very different numbers of rows; "false"; or
 *   the number of partitions
 * @param options of [[RunOptions]]
 */
private[supply] final class SuppliedFrame(data: DataFrame, name: String, repartition: String,
    options: java.util.Map[String, String]) {
  private val run = RunOptions.parse(options.asScala.toMap)
  private val sc = data.sparkSession.sparkContext
  private val (own, unequal) = new WaitingRanks(sc, run.ranksToNotify).notifiedOf {
    val source = FrameSource.of(data, new ListLengths)
    source -> RunPlan.imbalance(name, source, run.settings)
  }

  /** What is wrong with the ranks' shares of its own partitions; null: nothing is. */
  val imbalance: String = unequal.orNull

  /** Over how many partitions its rows are dealt again; 0: it keeps its own. */
  val partitions: Int = repartition match {
    case "false" => 0
    case "auto" => if (imbalance == null || !EvenRows.canBeOf(own)) 0
      else RunPlan.partitionsFor(run.settings)
    case number => number.toInt
  }

  /** Supplies it: as `df.write.format("supply")`. */
  def supply(): Unit = {
    def source = if (partitions == 0) own
    else EvenRows.of(data, own, partitions).getOrElse(throw new ConfigException(
        s"repartition=$partitions: $name is read in place (inPlace), so its rows stay where they are: set the reader's option partitions"))
    SQLExecution.withNewExecutionId(data.queryExecution, Some("Supplier.run")) {
      SupplyJob.run(sc, run,
        emptyError = Some(s"$name has no rows: is a filter too strict, or a join empty?"))(_ =>
        source)
    }
    ()
  }
}
