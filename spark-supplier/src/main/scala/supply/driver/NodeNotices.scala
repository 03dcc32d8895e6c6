package supply.driver

import scala.collection.mutable

import org.apache.spark.{SparkContext, SparkException, TaskContext}
import org.apache.spark.supply.SparkInternals

import supply.core.SupplyException
import supply.executor.PinnedTask
import supply.pair.{ConfigFiles, FailureNotice, PairPaths}
import supply.plan.Hostfile

/**
 * Tells all ranks of the node where it runs that Spark has given up. Arguments as for
 * FailureDelivery.deliver.
 *
 * @param end
 *   until when ranks that are not there yet are awaited, in milliseconds since 1970
 */
private[supply] final class NodeNotices(
    configFiles: ConfigFiles, hosts: Hostfile, run: Long, attached: Set[Int], text: String,
    end: Long)
    extends Serializable {
  import NodeNotices._

  def deliver(): Outcome = {
    val host = PinnedTask.host
    val ranks = hosts.places.indices.filter(rank => hosts.places(rank).isOn(host))
    val there = mutable.Set(ranks.filter(attached): _*)
    try {
      val pairs = configFiles.read()
      // Too few lines may be the very failure: those that have one are told.
      tell(ranks.flatMap(rank => pairs.lift(hosts.places(rank).localRank).map(rank -> _)), there)
    } catch {
      case _: SupplyException => ()
    } // The ranks are told the first cause, and nothing of this one.
    Outcome(ranks, there.nonEmpty)
  }

  /** there: the ranks that have been there; one that has and is not any more is not awaited. */
  private def tell(pairs: Seq[(Int, PairPaths)], there: mutable.Set[Int]): Unit = {
    var open = pairs
    var until = end
    var goOn = true
    while (goOn) {
      open = open.filterNot { case (rank, paths) => isDone(rank, paths, there) }
      val now = System.currentTimeMillis()
      if (there.nonEmpty) until = math.min(until, now + (othersSeconds * 1000).toLong)
      goOn = open.nonEmpty && now < until && !TaskContext.get().isInterrupted()
      if (goOn) Thread.sleep(pollMillis)
    }
  }

  private def isDone(rank: Int, paths: PairPaths, there: mutable.Set[Int]): Boolean =
    try FailureNotice.send(paths, run, text, roomSeconds)(isWanted(run)) match {
        case FailureNotice.Told =>
          there += rank
          true
        case FailureNotice.NotNow =>
          there += rank
          false
        case FailureNotice.Absent => there(rank)
        case FailureNotice.NotWanted => true
      }
    catch { case e: SupplyException => !e.retry }
}

private[supply] object NodeNotices {

  private def name(run: Long) = s"supply-failure-${run.toHexString}"

  /**
   * Whether the driver still wants ranks to be told. A task may come late, or on an executor that
   * has stood still: by then new ranks may have opened their pairs, which nobody has attached to
   * yet.
   */
  private def isWanted(run: Long): Boolean =
    try SparkInternals.askDriver[Boolean](name(run), Wanted)
    catch { case _: SparkException => false }

  private val Wanted = "wanted"

  /** Lets the driver want it, until it is closed. */
  def want(sc: SparkContext, run: Long): AutoCloseable =
    SparkInternals.answerTasks(sc, name(run)) { case Wanted => true }

  /** ranks: those of the node; anyWasThere: at least one of them was there in this run. */
  final case class Outcome(ranks: Seq[Int], anyWasThere: Boolean)

  /**
   * mpirun starts its ranks at once, and ends them all when it sees one end: who has not come by
   * then will not come.
   */
  val othersSeconds = 3.0

  /** What a living rank may take to make room in a full notification pipe. */
  private val roomSeconds = 2.0

  private val pollMillis = 20L
}
