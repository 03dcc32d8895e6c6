package supply.api

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.SparkContext
import org.apache.spark.supply.{ClientJar, SparkInternals}
import picocli.CommandLine.{Command, Option => Opt}

import supply.core.{BuiltFor, ConfigException, FailureText, NamedOptions, SupplyException}
import supply.linalg.NamedRanks
import supply.plan.HostNames
import supply.run.{HubRun, SlotRequests, TaskSlots}

/**
 * What the Python package asks the driver's JVM, and gets in JSON: through py4j, or from a session of
 * Spark Connect by `spark.read.format("supply").option("call", NAME)`. Any call can be repeated.
 */
@Command(name = "call", sortOptions = false)
private[supply] final class SessionCall {
  @Opt(
    names = Array("--call"),
    paramLabel = "NAME",
    required = true,
    description = Array(
      "session: what the session is. slots: the task slots of each host. holders: the jobs that have tasks. addresses: of hosts. failure: why a write of a run has failed. " +
        "starters-failure: why its starters have. turn: whether a run may start ranks. checkpoints: of a run. python-failure: the exception of a traceback in one line. end-with-ranks: the tasks of a " +
        "run end without a failure when their ranks leave. times: of the tasks of a run. forget: no task of the run is left."))
  var name: String = _

  @Opt(names = Array("--run"), paramLabel = "NAME", description = Array("The run."))
  var run: String = _

  @Opt(names = Array("--turn"), paramLabel = "VERB", defaultValue = "",
    description = Array(
      "turn: ask, again and again until the turn is the run's; idle: its ranks wait for a call; release."))
  var turn: String = _

  @Opt(names = Array("--needs"), paramLabel = "JSON", defaultValue = "{}",
    description = Array(
      "turn: slots, device_slots (for tasks with GPUs) and ranks (that get GPUs; -1: all), each by host."))
  var needs: String = _

  @Opt(names = Array("--checkpoints"), paramLabel = "VERB", defaultValue = "",
    description = Array(
      "checkpoints: latest, the newest complete one in a folder; begin, ranks of the run may use the folder; complete."))
  var checkpoints: String = _

  @Opt(names = Array("--tasks"), paramLabel = "N", defaultValue = "0",
    description = Array(
      "slots: for how many tasks Spark is asked for executors, until a job of the run begins, the run has ended, or half a minute after the last call."))
  var tasks: Int = _

  @Opt(names = Array("--hosts"), paramLabel = "NAMES", defaultValue = "",
    description = Array("Names with commas between them. slots: the host of each task; none: any."))
  var hosts: String = _

  @Opt(names = Array("--text"), paramLabel = "TEXT", defaultValue = "",
    description =
      Array("failure: what was written. python-failure: the traceback. checkpoints: JSON."))
  var text: String = _

  def answer(sc: SparkContext): String = {
    val json = SessionCall.json.createObjectNode()
    name match {
      case "session" => session(sc, json)
      case "slots" => slots(sc, json)
      case "turn" => TurnCalls.answer(sc, turn, run, needs, json)
      case "checkpoints" => CheckpointCalls.answer(sc, checkpoints, run, text, json)
      case "holders" => json.put("text", TaskSlots.holders(sc).mkString(", "))
      case "addresses" =>
        HostNames.addresses(hosts.split(",").toSeq).foreach { case (host, found) =>
          found.foldLeft(json.putArray(host))(_.add(_))
        }
      case "failure" =>
        Hubs.failure(run, text).orElse(NamedRanks.find(run).flatMap(_.failure))
          .foreach(SessionCall.describe(sc, _, json))
      case "starters-failure" =>
        Starters.failure(sc, run).foreach(json.put("text", _))
        json.put("misplaced", Starters.areMisplaced(run))
      case "python-failure" => json.put("text", FailureText.ofPython(text))
      case "times" => times(json)
      case "end-with-ranks" => Hubs.find(run).foreach(_.call.haveReturned = true)
      case "forget" => Hubs.find(run).foreach(_.call = new HubRun.Call)
      case other => throw new ConfigException(s"call is '$other', and this server has no such call")
    }
    json.toString
  }

  private def session(sc: SparkContext, json: ObjectNode): Unit = {
    val idle = sc.getConf.getTimeAsSeconds("spark.python.worker.idleTimeoutSeconds", "0")
    val kills = sc.getConf.getBoolean("spark.python.worker.killOnIdleTimeout", false)
    json.put("local", sc.isLocal).put("master", sc.master)
      .put("application", sc.applicationId).put("threads", sys.env.getOrElse("OMP_NUM_THREADS", ""))
      .put("idleSeconds", if (kills) idle else 0L).put("version", BuiltFor.version)
      .put("artifact", ClientJar.isArtifact).put("dynamic", TaskSlots.areDynamic(sc))
    ClientJar.digest.foreach(json.put("digest", _))
    SparkInternals.coresOnly(sc).foreach(_ =>
      json.put("coresOfStarter", SparkInternals.coresOfTask(sc.getConf).toDouble))
    ()
  }

  private def slots(sc: SparkContext, json: ObjectNode): Unit = {
    SlotRequests.renew(sc, run, tasks, hosts.split(",").filter(_.nonEmpty).toSeq,
      Hubs.find(run).isDefined)
    // Before the slots: an executor may register in between.
    json.put("complete", TaskSlots.areComplete(sc))
    TaskSlots.impossible(sc).foreach(json.put("impossible", _))
    put(json.putObject("slots"), TaskSlots.ofHosts(sc))
    put(json.putObject("starterSlots"), TaskSlots.ofHostsForCoresOnly(sc))
    val gpus = json.putObject("gpus")
    TaskSlots.gpusOfHosts(sc).foreach { case (host, found) =>
      found.foldLeft(gpus.putArray(host))(_.add(_))
    }
    json.put("busy", SparkInternals.executorSlots(sc).map(_.activeTasks).sum)
    ()
  }

  /** The copy is what is left of a task's time. That of the source is sampled. */
  private def times(json: ObjectNode): Unit = {
    val tasks = json.putArray("tasks")
    Hubs.find(run).toSeq.flatMap(_.call.times).foreach { case (data, task) =>
      val scan = math.min(task.waitedForSource, task.nanos - task.waitedForRank)
      tasks.addObject().put("data", data).put("rank", task.rank).put("host", task.host)
        .put("rows", task.elements).put("bytes", task.bytes).put("seconds", task.nanos / 1e9)
        .put("scan", scan / 1e9).put("copy", (task.nanos - task.waitedForRank - scan) / 1e9)
        .put("waiting_for_rank", task.waitedForRank / 1e9)
    }
  }

  private def put(json: ObjectNode, counts: Map[String, Int]): Unit =
    counts.foreach { case (host, count) => json.put(host, count) }
}

private[supply] object SessionCall {
  /** The option that tells this read from others. */
  final val Name = "call"

  private val json = new ObjectMapper

  def parse(options: Map[String, String]): SessionCall =
    NamedOptions.parse(new SessionCall, options)

  /** The answer to a call, for Python through py4j. */
  def answerTo(sc: SparkContext, options: java.util.Map[String, String]): String =
    parse(options.asScala.toMap).answer(sc)

  /** What a failure is, for Python through py4j. Also if Spark has stopped. */
  def describe(sc: SparkContext, error: Throwable): String = {
    val described = json.createObjectNode()
    describe(sc, error, described)
    described.toString
  }

  private def describe(sc: SparkContext, error: Throwable, json: ObjectNode): Unit = {
    val causes = FailureText.causes(error)
    json.put("text", FailureText.of(error, SparkInternals.hostOf(sc, _)))
    causes.collectFirst { case known: SupplyException =>
      json.put("name", known.getClass.getSimpleName).put("timeout", known.isTimeout)
    }
    json.put("missingFile",
      causes.exists(_.isInstanceOf[java.nio.file.NoSuchFileException]))
    ()
  }
}
