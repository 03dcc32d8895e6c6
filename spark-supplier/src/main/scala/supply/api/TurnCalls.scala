package supply.api

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.SparkContext

import supply.core.ConfigException
import supply.run.{SlotRequests, TaskSlots, Turns}

/** The turns of this JVM's application, for all its clients: a call of [[SessionCall]]. */
private[supply] object TurnCalls {
  private val json = new ObjectMapper
  private val Wanted = """{"wanted": true}""".getBytes(UTF_8)
  private var current = Option.empty[(SparkContext, Turns)]

  /** verb: ask, idle or release. needs: in JSON; else the answer has nothing. */
  def answer(sc: SparkContext, verb: String, run: String, needs: String, answer: ObjectNode): Unit =
    verb match {
      case "ask" =>
        val found = of(sc).ask(run, parse(needs))
        answer.put("state", found.state.name)
        val gpus = answer.putObject("gpus")
        found.gpus.foreach { case (host, addresses) => gpus.put(host, addresses.mkString(",")) }
      case "idle" => of(sc).becomeIdle(run, parse(needs))
      case "release" =>
        of(sc).release(run)
        SlotRequests.end(run)
      case other =>
        throw new ConfigException(s"turn is '$other': it must be ask, idle or release")
    }

  private def of(sc: SparkContext): Turns = synchronized {
    current.filter(_._1 eq sc).map(_._2).getOrElse {
      val turns = new Turns(() => offer(sc), Hubs.find(_).isDefined, Hubs.tell(_, Wanted))
      current = Some(sc -> turns)
      turns
    }
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
