package supply.api

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.supply.OfApplication

import supply.run.{Hubs, TaskSlots, Turns}

/** The turns of this JVM's application, for all its clients: whether a run may start ranks. */
private[api] object TurnCalls {
  private val Wanted = """{"wanted": true}""".getBytes(UTF_8)
  val turns = new OfApplication(sc =>
    new Turns(() => offer(sc), Hubs.find(_).isDefined, Hubs.find(_).foreach(_.tell(Wanted))))

  val all: Map[String, Call => Any] = Map(
    "turn-ask" -> ask,
    "turn-idle" -> (call => turns(call.sc).becomeIdle(call.text("run"), needs(call))),
    "turn-release" -> (call => turns(call.sc).release(call.text("run"))))

  /** Again and again, until it is the run's turn. */
  private def ask(call: Call): Unit = {
    val found = turns(call.sc).ask(call.text("run"), needs(call))
    call.made.put("state", found.state.name)
    val gpus = call.made.putObject("gpus")
    found.gpus.foreach { case (host, addresses) => gpus.put(host, addresses.mkString(",")) }
  }

  private def offer(sc: SparkContext): Turns.Offer = Turns.Offer(
    slots(TaskSlots.ofHostsForCoresOnly(sc), withDevices = false) ++
      slots(TaskSlots.ofHosts(sc), withDevices = true),
    TaskSlots.gpusOfHosts(sc),
    sc.getConf.getDouble("spark.task.resource.gpu.amount", 0))

  private def slots(counts: Map[String, Int], withDevices: Boolean): Map[Turns.Slot, Int] =
    counts.map { case (host, count) => Turns.Slot(host, withDevices) -> count }

  /** slots, device_slots (for tasks with GPUs) and ranks (that get GPUs; -1: all), each by host. */
  private def needs(call: Call): Turns.Needs = {
    def counts(name: String) = call.words.path("needs").path(name).properties.asScala
      .map(count => count.getKey -> count.getValue.asInt).toMap
    Turns.Needs(
      slots(counts("slots"), withDevices = false) ++
        slots(counts("device_slots"), withDevices = true),
      counts("ranks"))
  }
}
