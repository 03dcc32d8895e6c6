package supply.driver

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals

import supply.core.{ContractException, Deadline, SupplyException}
import supply.executor.{FoundResult, NodeResults, ResultsSettings, ResultsTask}
import supply.plan.{HostNames, Hostfile}
import supply.protocol.{Column, Schema}

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
    val misplaced = SessionResults.misplaced(sc)
    val found = sealedHere(sc, settings, hosts).getOrElse(byJob(sc, settings, hosts))
      .sortBy(_.rank).toIndexedSeq
    requireOneRun(settings.name, found)
    val schema = commonSchema(settings.name, found)
    new LoadedResults(sc, hosts, misplaced, settings.name, found, schema)
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
      new NodeResults(settings, hosts, seconds = 0).find().toOption
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
    def described(schema: Schema) = schema.columns.map(column =>
      s"${column.name} ${column.format.replaceFirst(":[0-9]+$", "")}${column.childFormat}").mkString(
      ", ")
    val first = found.head.schema
    found.find(other => described(other.schema) != described(first)).foreach { other =>
      throw new ContractException(
        s"the ranks have written other columns into the result '$name': rank ${found.head.rank} has " +
          s"${described(first)}; rank ${other.rank} has ${described(other.schema)}")
    }
    Schema(first.columns.indices.map { i =>
      val column: Column = first.columns(i)
      column.copy(nullable = found.exists(_.schema.columns(i).nullable))
    })
  }
}
