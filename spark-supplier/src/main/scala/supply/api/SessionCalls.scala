package supply.api

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.supply.{ClientJar, SparkInternals}

import supply.core.{BuiltFor, FailureText}
import supply.plan.HostNames
import supply.run.{HubRun, Hubs, TaskSlots}

/** What the session is and has, and what has become of the jobs of a run. */
private[api] object SessionCalls {
  val all: Map[String, Call => Any] = Map(
    "session" -> session,
    "slots" -> slots,
    // The jobs that have tasks.
    "holders" -> (call => call.made.put("text", TaskSlots.holders(call.sc).mkString(", "))),
    "addresses" -> addresses,
    "failure" -> failure,
    "starters-failure" -> startersFailure,
    // The exception of a traceback in one line.
    "python-failure" -> (call => call.made.put("text", FailureText.ofPython(call.text("text")))),
    "times" -> times,
    // From now on the tasks of the run end without a failure when their ranks leave.
    "end-with-ranks" -> (call => Hubs.find(call.text("run")).foreach(_.call.haveReturned = true)),
    // No task of the run's call is left.
    "forget" -> (call => Hubs.find(call.text("run")).foreach(_.call = new HubRun.Call)))

  private def session(call: Call): Unit = {
    val sc = call.sc
    val idle = sc.getConf.getTimeAsSeconds("spark.python.worker.idleTimeoutSeconds", "0")
    val kills = sc.getConf.getBoolean("spark.python.worker.killOnIdleTimeout", false)
    call.made.put("local", sc.isLocal).put("master", sc.master)
      .put("application", sc.applicationId).put("threads", sys.env.getOrElse("OMP_NUM_THREADS", ""))
      .put("idleSeconds", if (kills) idle else 0L).put("version", BuiltFor.version)
      .put("artifact", ClientJar.isArtifact).put("dynamic", TaskSlots.areDynamic(sc))
    ClientJar.digest.foreach(call.made.put("digest", _))
    SparkInternals.coresOnly(sc).foreach(_ =>
      call.made.put("coresOfStarter", SparkInternals.coresOfTask(sc.getConf).toDouble))
  }

  /**
   * The task slots of each host. For an open run Spark is asked for executors: for `tasks` (0: no more),
   * on `hosts` or any.
   */
  private def slots(call: Call): Unit = {
    import call.{made, sc, words}
    val run = call.text("run")
    Hubs.find(run).foreach(_.keepSlots(sc, words.path("tasks").asInt,
        words.path("hosts").elements.asScala.map(_.asText).toSeq))
    // Before the slots: an executor may register in between.
    made.put("complete", TaskSlots.areComplete(sc))
    TaskSlots.impossible(sc).foreach(made.put("impossible", _))
    put(made.putObject("slots"), TaskSlots.ofHosts(sc))
    put(made.putObject("starterSlots"), TaskSlots.ofHostsForCoresOnly(sc))
    val gpus = made.putObject("gpus")
    TaskSlots.gpusOfHosts(sc).foreach { case (host, found) =>
      found.foldLeft(gpus.putArray(host))(_.add(_))
    }
    made.put("busy", SparkInternals.executorSlots(sc).map(_.activeTasks).sum)
    ()
  }

  private def put(made: ObjectNode, counts: Map[String, Int]): Unit =
    counts.foreach { case (host, count) => made.put(host, count) }

  private def addresses(call: Call): Unit =
    HostNames.addresses(call.words.path("hosts").elements.asScala.map(_.asText).toSeq).foreach {
      case (host, found) => found.foldLeft(call.made.putArray(host))(_.add(_))
    }

  /** Why that part of a run, or the last call that failed of what an extension has, has failed. */
  private def failure(call: Call): Unit =
    (Hubs.failure(call.text("run"), call.text("part")) ++
      Calls.extensions.flatMap(_.failure(call.text("run")))).headOption.foreach(
      Calls.describe(call.sc, _, call.made))

  private def startersFailure(call: Call): Unit = {
    Starters.failure(call.sc, call.text("run")).foreach(call.made.put("text", _))
    call.made.put("misplaced", Starters.areMisplaced(call.text("run")))
    ()
  }

  /** Of the tasks of a run's call. The copy is what is left of a task's time. The source's is sampled. */
  private def times(call: Call): Unit = {
    val tasks = call.made.putArray("tasks")
    Hubs.find(call.text("run")).toSeq.flatMap(_.call.times).foreach { case (data, task) =>
      val scan = math.min(task.waitedForSource, task.nanos - task.waitedForRank)
      tasks.addObject().put("data", data).put("rank", task.rank).put("host", task.host)
        .put("rows", task.elements).put("bytes", task.bytes).put("seconds", task.nanos / 1e9)
        .put("scan", scan / 1e9).put("copy", (task.nanos - task.waitedForRank - scan) / 1e9)
        .put("waiting_for_rank", task.waitedForRank / 1e9)
    }
  }
}
