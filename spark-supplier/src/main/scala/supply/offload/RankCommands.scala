package supply.offload

import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.{SparkContext, TaskContext, TaskKilledException}
import org.apache.spark.supply.DriverEndpoint

import supply.core.RankException
import supply.driver.NodeJob
import supply.executor.{PinnedTask, SupplySettings}
import supply.plan.Hostfile

/**
 * Sends commands to all ranks. If they are on the driver's node it talks to them itself; otherwise
 * a small Spark job does, with a task on each of their nodes, so that no port is open and Spark's
 * authentication holds. One command at a time.
 */
private[offload] final class RankCommands(
    sc: SparkContext, settings: SupplySettings, val hosts: Hostfile) extends AutoCloseable {
  import RankCommands._

  private val areHere = sc.isLocal ||
    hosts.byHost.nonEmpty && hosts.places.forall(_.isOn(PinnedTask.host))
  private val isCancelled = new AtomicBoolean
  @volatile private var done = 0.0
  private lazy val endpoint = new DriverEndpoint(sc, s"supply-commands-${sc.hashCode}-$hashCode")({
    case Progress(part) => done = part
  })

  /** How much of a routine is done, from 0 to 1, as it says. Any thread may ask. */
  def progress: Double = done

  /** Cancels the command that runs, from another thread. */
  def cancel(): Unit = isCancelled.set(true)

  /**
   * The ranks' answers in rank order. If one has failed, those of a node that has not got the command
   * are missing.
   */
  def send(command: Command): Seq[Answer] = {
    isCancelled.set(false)
    done = 0
    val node = new NodeCommand(settings.configFiles, hosts, command, settings.timeout)
    (if (areHere) here(node) else byJob(node)).sortBy(_._1).map(_._2)
  }

  private def here(node: NodeCommand): Seq[(Int, Answer)] = node.execute(done = _) {
    if (isCancelled.get) throw new RankException("the command was cancelled")
    if (Thread.interrupted()) throw new InterruptedException("the command was interrupted")
  }

  private def byJob(node: NodeCommand): Seq[(Int, Answer)] = {
    val driver = endpoint.calls
    NodeJob.runUntil(sc, hosts, "supply: a command to the ranks", othersSeconds) { isFirst =>
      node.execute(part => if (isFirst) driver.ask[Unit](Progress(part))) {
        if (TaskContext.get().isInterrupted()) throw new TaskKilledException("cancelled")
      }
    }(_.exists { case (_, answer) => !answer.isInstanceOf[Answer.Done] }).flatten
  }

  override def close(): Unit = if (!areHere) endpoint.close()
}

private object RankCommands {
  /** All ranks fail together, but Spark may never start the task that waits for a slot. */
  private val othersSeconds = 10.0

  /** To the driver: how much of a routine is done. */
  final case class Progress(done: Double)
}
