package supply.offload

import scala.concurrent.Promise

import org.apache.spark.{SparkContext, TaskContext, TaskKilledException}
import org.apache.spark.supply.DriverEndpoint

import supply.core.RankException
import supply.driver.NodeJob
import supply.executor.{PinnedTask, PreferredHosts, SupplySettings}
import supply.plan.{HostNames, Hostfile}

/**
 * Sends commands to all ranks. If they are on the driver's node it talks to them itself; otherwise
 * a small Spark job does, with a task on each of their nodes, so that no port is open and Spark's
 * authentication holds. One command at a time.
 */
private[offload] final class RankCommands(
    sc: SparkContext, settings: SupplySettings, val hosts: Hostfile) extends AutoCloseable {
  import RankCommands._

  /** Whether the driver talks to them itself. */
  val areHere: Boolean = sc.isLocal ||
    hosts.byHost.nonEmpty &&
    HostNames.known(hosts, Seq(PinnedTask.host)).places.forall(_.isOn(PinnedTask.host))
  @volatile private var cancelled = Promise[Nothing]()
  @volatile private var done = 0.0
  private lazy val endpoint = new DriverEndpoint(sc, s"supply-commands-${sc.hashCode}-$hashCode")({
    case Progress(part) => done = part
  })

  /** How much of a routine is done, from 0 to 1, as it says. Any thread may ask. */
  def progress: Double = done

  /** Cancels the command that runs, and those that continue it, from another thread. */
  def cancel(): Unit = {
    cancelled.tryFailure(new RankException("the command was cancelled"))
    ()
  }

  /**
   * The ranks' answers in rank order. If one has failed, those of a node that has not got the command
   * are missing. continues: a call of several commands, of which this is a later one.
   */
  def send(command: Command, continues: Boolean = false): Seq[Answer] = {
    if (!continues) cancelled = Promise()
    checkCancelled()
    done = 0
    val known =
      if (areHere) HostNames.known(hosts, Seq(PinnedTask.host))
      else PreferredHosts.known(sc, hosts)
    val node = new NodeCommand(settings.configFiles, known, command, settings.timeout)
    (if (areHere) here(node) else byJob(node)).sortBy(_._1).map(_._2)
  }

  private def here(node: NodeCommand): Seq[(Int, Answer)] = node.execute(done = _) {
    checkCancelled()
    if (Thread.interrupted()) throw new InterruptedException("the command was interrupted")
  }

  private def checkCancelled(): Unit = cancelled.future.value.foreach(_.get)

  private def byJob(node: NodeCommand): Seq[(Int, Answer)] = {
    val driver = endpoint.calls
    NodeJob.run(sc, hosts, "a command to the ranks", settings.timeout,
      cancelled = cancelled.future)(
      isFirst =>
        node.execute(part => if (isFirst) driver.ask[Unit](Progress(part))) {
          if (TaskContext.get().isInterrupted()) throw new TaskKilledException("cancelled")
        },
      isLast = (answers: Seq[(Int, Answer)]) =>
        answers.exists { case (_, answer) => !answer.isInstanceOf[Answer.Done] },
      othersSeconds = othersSeconds).flatten
  }

  override def close(): Unit = if (!areHere) endpoint.close()
}

private object RankCommands {
  /** All ranks fail together, but Spark may never start the task that waits for a slot. */
  private val othersSeconds = 10.0

  /** To the driver: how much of a routine is done. */
  final case class Progress(done: Double)
}
