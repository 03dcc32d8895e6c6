package supply.results

import java.lang.ref.Cleaner

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDDPartition
import org.apache.spark.supply.{DriverEndpoint, OfApplication, SparkInternals}

import supply.core.{ContractException, Deadline, SupplyException}
import supply.plan.{HostNames, Hostfile}
import supply.protocol.{Column, Schema}
import supply.run.{NodeJob, TaskSlots}
import supply.task.{PinnedTask, PlacedTask, SessionEnd, TaskMessage}

/**
 * Finds the results of all ranks by a job on the nodes, or without one if all are sealed and on this
 * node. Returns when all are sealed.
 */
private[supply] object LoadResults {
  /** How long Spark may take to start the tasks and return what they found. */
  private val startSeconds = 10.0
  private val pollMillis = 100L

  def apply(sc: SparkContext, settings: ResultsSettings): LoadedResults = {
    val hosts = knownHosts(sc, settings)
    val reading = SessionResults.reading(sc)
    val found = sealedHere(sc, settings, hosts).getOrElse(byJob(sc, settings, hosts))
      .sortBy(_.rank).toIndexedSeq
    requireOneRun(settings.name, found)
    val schema = commonSchema(settings.name, found)
    new LoadedResults(sc, hosts, reading, settings.name, found, schema)
  }

  /** Just after its start, Spark may not know by which names executors register. */
  private def knownHosts(sc: SparkContext, settings: ResultsSettings): Hostfile = {
    var hosts = settings.readHosts()
    def isKnown = {
      val executors = SparkInternals.executorSlots(sc).map(_.host).distinct
      hosts = HostNames.known(hosts, executors)
      hosts.byHost.forall(host => executors.exists(host._2.head.isOn))
    }
    new Deadline(math.min(startSeconds, settings.timeout)).poll(pollMillis)(
      isKnown || TaskSlots.areComplete(sc))
    hosts
  }

  /** None: not all of them are there, and the job waits for them or says why. */
  private def sealedHere(
      sc: SparkContext, settings: ResultsSettings, hosts: Hostfile): Option[Seq[FoundResult]] =
    if (sc.isLocal)
      ResultsTask(new NodeResults(settings, hosts, seconds = 0).find().toOption)
    else None

  private def byJob(
      sc: SparkContext, settings: ResultsSettings, hosts: Hostfile): Seq[FoundResult] = {
    val node = new NodeResults(settings, hosts, settings.timeout)
    // A task may start as late as the timeout, and then waits as long for its ranks.
    NodeJob.run(sc, hosts, s"waiting for the result '${settings.name}'",
      settings.timeout, seconds = 2 * settings.timeout + startSeconds)(
      _ => ResultsTask(node.find()),
      isLast = (found: Either[SupplyException, Seq[FoundResult]]) => found.isLeft)
      .flatMap(_.fold(throw _, identity))
  }

  /** Refuses a file of an earlier run. A rank that no task had supplied when it wrote has run 0. */
  private def requireOneRun(name: String, found: Seq[FoundResult]): Unit = {
    def ranksOf(run: Long) = found.filter(_.run == run).map(_.rank).mkString(", ")
    found.map(_.run).distinct.filter(_ != 0) match {
      case Seq(one, other, _*) => throw new ContractException(
          s"the ranks ${ranksOf(one)} and ${ranksOf(other)} of the result '$name' are of different runs: " +
            "let all ranks write it in one run, and load it again")
      case _ => ()
    }
  }

  /** The columns of all ranks. One that is nullable on any rank is nullable. */
  private def commonSchema(name: String, found: IndexedSeq[FoundResult]): Schema = {
    // A rank without rows does not know how long lists are.
    def described(schema: Schema) = schema.entries.map(column =>
      s"${column.name} ${column.format.replaceFirst(":[0-9]+$", "")}${column.childFormat}").mkString(
      ", ")
    val first = found.head.schema
    found.find(other => described(other.schema) != described(first)).foreach { other =>
      throw new ContractException(
        s"the ranks have written other columns into the result '$name': rank ${found.head.rank} has " +
          s"${described(first)}; rank ${other.rank} has ${described(other.schema)}")
    }
    Schema(first.columns.indices.map(i => common(found.map(_.schema.columns(i)))))
  }

  private def common(columns: Seq[Column]): Column = {
    val first = columns.head
    first.copy(nullable = columns.exists(_.nullable),
      children = first.children.indices.map(i => common(columns.map(_.children(i)))))
  }
}

/**
 * A result that `load()` has found on all ranks. `reading`: in which a task reads it.
 *
 * The files stay until [[release]] or the session's end, and not only while a DataFrame refers to
 * them: a garbage collection must not decide whether a later `load()` finds them. If there is no
 * later one, [[releaseUnreferenced]] lets it.
 */
private[supply] final class LoadedResults(sc: SparkContext, hosts: Hostfile,
    val reading: PlacedTask, val name: String,
    val files: IndexedSeq[FoundResult], val schema: Schema) {
  def elements: Long = files.map(_.elements).sum

  def bytes: Long = files.map(_.bytes).sum

  /**
   * Removes the files by a job on the nodes, also those that other DataFrames of this result read.
   * Throws a SupplyException if a node does not answer.
   */
  def release(): Unit = LoadedResults.release(sc, hosts, name, files)

  /** As [[release]], some time after no plan of a DataFrame refers to this any more. */
  def releaseUnreferenced(): Unit = {
    // It must not refer to this.
    val (context, nodes, result, found) = (sc, hosts, name, files)
    LoadedResults.cleaner.register(this,
      () => LoadedResults.release(context, nodes, result, found))
    ()
  }
}

private[supply] object LoadedResults {
  private val timeout = 60.0
  private lazy val cleaner = Cleaner.create()

  private def release(
      sc: SparkContext, hosts: Hostfile, name: String, files: Seq[FoundResult]): Unit =
    if (!sc.isStopped) {
      NodeJob.run(sc, hosts, s"releasing the result '$name'", timeout, seconds = timeout) { node =>
        files.filter(file => node.hosts.places(file.rank).isOn(PinnedTask.host)).foreach { file =>
          OpenResults.remove(file.path, file.generation)
        }
      }
      ()
    }

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

/**
 * The driver's part of the results of a session: its answers to tasks that read results and land on a
 * wrong node, in any job.
 */
private[supply] final class SessionResults(sc: SparkContext) {
  /** How often the task of a partition of a stage has landed on a wrong node. The oldest are forgotten. */
  private val moves = mutable.LinkedHashMap.empty[(Int, Int), Int]

  SessionEnd.watch(sc)
  private val endpoint = new DriverEndpoint(sc, ResultsTask.Endpoint)({
    case TaskMessage.Ends(stage, partition, _, _) =>
      val moved = moves.getOrElse((stage, partition), 0) + 1
      moves((stage, partition)) = moved
      if (moves.size > SessionResults.MostMoves) moves -= moves.head._1
      moved < PlacedTask.Limit
  })
}

private[supply] object SessionResults {
  private[results] final val MostMoves = 10000

  private[supply] val current = new OfApplication(new SessionResults(_))

  /** In which tasks read results. */
  def reading(sc: SparkContext): PlacedTask =
    new PlacedTask(current(sc).endpoint.calls, PlacedTask.ShortPauseMillis)
}
