package supply.api

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.SparkContext
import org.apache.spark.supply.OfApplication

import supply.core.ConfigException
import supply.run.{SlotRequests, TaskSlots, Turns}

/** The turns of this JVM's application, for all its clients: a call of [[SessionCall]]. */
private[supply] object TurnCalls {
  private val json = new ObjectMapper
  private val Wanted = """{"wanted": true}""".getBytes(UTF_8)
  private[api] val turns = new OfApplication(sc =>
    new Turns(() => offer(sc), Hubs.find(_).isDefined, Hubs.tell(_, Wanted)))

  /** verb: ask, idle or release. needs: in JSON; else the answer has nothing. */
  def answer(sc: SparkContext, verb: String, run: String, needs: String, answer: ObjectNode): Unit =
    verb match {
      case "ask" =>
        val found = turns(sc).ask(run, parse(needs))
        answer.put("state", found.state.name)
        val gpus = answer.putObject("gpus")
        found.gpus.foreach { case (host, addresses) => gpus.put(host, addresses.mkString(",")) }
      case "idle" => turns(sc).becomeIdle(run, parse(needs))
      case "release" =>
        turns(sc).release(run)
        SlotRequests.end(run)
      case other =>
        throw new ConfigException(s"turn is '$other': it must be ask, idle or release")
    }

  private def offer(sc: SparkContext): Turns.Offer = Turns.Offer(
    slots(TaskSlots.ofHostsForCoresOnly(sc), withDevices = false) ++
      slots(TaskSlots.ofHosts(sc), withDevices = true),
    TaskSlots.gpusOfHosts(sc),
    sc.getConf.getDouble("spark.task.resource.gpu.amount", 0))

  private def slots(counts: Map[String, Int], withDevices: Boolean): Map[Turns.Slot, Int] =
    counts.map { case (host, count) => Turns.Slot(host, withDevices) -> count }

  private def parse(needs: String): Turns.Needs = {
    val parsed = json.readTree(needs)
    def counts(name: String): Map[String, Int] = {
      val found = parsed.path(name)
      found.fieldNames.asScala.map(host => host -> found.get(host).asInt).toMap
    }
    Turns.Needs(
      slots(counts("slots"), withDevices = false) ++
        slots(counts("device_slots"), withDevices = true),
      counts("ranks"))
  }
}
