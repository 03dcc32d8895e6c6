package supply.api

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.SparkContext
import org.apache.spark.sql.DataFrame
import org.slf4j.LoggerFactory
import picocli.CommandLine.{Command, Mixin, Option => Opt}

import supply.core.ConfigException
import supply.rows.{ColumnForms, EvenRows, NamedColumns, Shapes}
import supply.run.{Hubs, RunOptions, RunPlan}
import supply.source.Source
import supply.task.SupplySettings

/** The options of a DataFrame's writer: those of a run, and these. */
@Command(name = "supply", sortOptions = false)
private[supply] final class FrameOptions {
  @Mixin
  var run: RunOptions = _

  @Mixin
  var columns: ColumnOptions = _

  @Opt(names = Array("--frame-name"), paramLabel = "NAME",
    description = Array(
      "What messages call the data. With a name, data without rows is an error. Default: the data."))
  var frameName: String = _

  @Opt(
    names = Array("--repartition"),
    paramLabel = "HOW",
    defaultValue = "false",
    description = Array(
      "auto: if the partitions would give ranks very different numbers of rows, or there are fewer of them than ranks, Spark deals " +
        "the rows again, in a shuffle. false: it does not. N: it always does, over N partitions. Default: ${DEFAULT-VALUE}."))
  var repartition: String = _

  @Opt(
    names = Array("--hub-run"),
    paramLabel = "NAME",
    description = Array(
      "The run at the hub to which this write belongs. Its client gets the warnings, and the write shows no progress."))
  var hubRun: String = _

  /** Supplies within the run at the hub, if there is one. */
  def within[A](body: => A): A = Option(hubRun) match {
    case None => body
    case Some(name) =>
      Hubs.find(name).foreach(_.releaseSlots())
      Hubs.notingFailure(name, frameName)(body)
  }

  /** The rows of `data`, dealt again if that is wanted. */
  def source(sc: SparkContext, data: DataFrame, settings: SupplySettings): Source = {
    val own = FrameSource.of(data, columns.shapes)
    if (repartition == "false" && frameName == null && hubRun == null) own
    else {
      val name = Option(frameName).getOrElse("the data")
      val unequal = RunPlan.imbalance(name, own, settings)
      val partitions = partitionsFor(own, unequal.isDefined, settings)
      unequal.filter(_ => repartition == "auto" || repartition == "false").foreach(
        warn(name, _, partitions))
      if (partitions == 0) own
      else EvenRows.of(data, own, partitions).getOrElse(throw new ConfigException(
          s"repartition=$partitions: $name is read in place (inPlace), so its rows stay where they are: set the reader's option partitions"))
    }
  }

  /** 0: they stay as they are. */
  private def partitionsFor(own: Source, areUnequal: Boolean, settings: SupplySettings): Int =
    repartition match {
      case "false" => 0
      case "auto" => if (areUnequal && EvenRows.canBeOf(own)) RunPlan.partitionsFor(settings) else 0
      case number => Try(number.toInt).toOption.filter(_ > 0).getOrElse(throw new ConfigException(
            s"repartition is '$number': it must be auto, false or a number of partitions"))
    }

  /** Without it, the plan of the run warns. */
  private def warn(name: String, unequal: String, partitions: Int): Unit = {
    val warning = FrameOptions.json.createObjectNode().put("warning", unequal)
      .put("partitions", partitions).put("name", name)
    if (hubRun != null) Hubs.find(hubRun).foreach(_.tell(warning.toString.getBytes(UTF_8)))
    else if (partitions > 0)
      FrameOptions.log.warn(s"$unequal: Spark deals its rows again, over $partitions partitions")
  }
}

/** The options of frames and streams that say what columns become. */
private[supply] final class ColumnOptions {
  @Opt(names = Array("--lists"), paramLabel = "HOW", defaultValue = ColumnOptions.Auto,
    description = Array(
      "auto: a column of arrays that all have one length in the first rows becomes an array of more dimensions, and an array of another " +
        "length is an error. varying: every array may have its own length. Names of columns, separated by commas: the arrays of these. " +
        "Default: ${DEFAULT-VALUE}."))
  var lists: String = _

  @Opt(names = Array("--half"), paramLabel = "COLUMN", split = ",",
    description = Array(
      "Columns of float or double, or with these in them, whose numbers are rounded to half precision. Separate several by commas."))
  var half: Array[String] = Array.empty

  @Opt(names = Array("--vectors"), paramLabel = "HOW", defaultValue = ColumnOptions.Dense,
    description = Array(
      "dense: a vector of Spark ML or MLlib becomes an array of its numbers. sparse: a struct of size, indices and values, without its " +
        "zeros. Names of columns, separated by commas: sparse are the vectors of these. Default: ${DEFAULT-VALUE}."))
  var vectors: String = _

  /** The shapes to find. */
  def shapes: Shapes = new Shapes(ColumnForms(
      NamedColumns("half", half.map(_.trim).toSet),
      NamedColumns.of("lists", lists, ColumnOptions.Auto, "varying"),
      NamedColumns.of("vectors", vectors, ColumnOptions.Dense, "sparse")))
}

private[supply] object ColumnOptions {
  final val Auto = "auto"
  final val Dense = "dense"
}

private[supply] object FrameOptions {
  private val log = LoggerFactory.getLogger("supply.api.FrameOptions")
  private val json = new ObjectMapper

  /** As [[RunOptions.parse]]. */
  def parse(options: Map[String, String]): FrameOptions = {
    val frame = new FrameOptions
    RunOptions.read(frame, options)(frame.run)
    frame.run.isQuiet = frame.hubRun != null
    frame.run.emptyError = Option(frame.frameName).map(name =>
      s"$name has no rows: is a filter too strict, or a join empty?")
    frame
  }
}
