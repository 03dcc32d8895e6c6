package supply.linalg

import java.nio.ByteBuffer
import java.nio.channels.Selector
import java.nio.charset.StandardCharsets.UTF_8

import scala.concurrent.Promise
import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkContext, TaskContext, TaskKilledException}

import supply.core.{ConfigException, Deadline, RankException}
import supply.pair.ConfigFiles
import supply.plan.{HostNames, Hostfile}
import supply.run.NodeJob
import supply.task.{PinnedTask, SupplySettings}

/**
 * Sends commands to all ranks. If they are on the driver's node it talks to them itself; otherwise
 * a small Spark job does, with a task on each of their nodes, so that no port is open and Spark's
 * authentication holds. One command at a time.
 */
private[linalg] final class RankCommands(
    sc: SparkContext, settings: SupplySettings, val hosts: Hostfile) {
  import RankCommands._

  /** Whether the driver talks to them itself. */
  val areHere: Boolean = sc.isLocal ||
    hosts.byHost.nonEmpty &&
    HostNames.known(hosts, Seq(PinnedTask.host)).places.forall(_.isOn(PinnedTask.host))
  @volatile private var cancelled = Promise[Nothing]()
  @volatile private var done = 0.0

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
    val node = new NodeCommand(settings.configFiles, command, settings.timeout)
    (if (areHere) here(node) else byJob(node)).sortBy(_._1).map(_._2)
  }

  private def here(node: NodeCommand): Seq[(Int, Answer)] =
    node.execute(HostNames.known(hosts, Seq(PinnedTask.host)), done = _) {
      checkCancelled()
      if (Thread.interrupted()) throw new InterruptedException("the command was interrupted")
    }

  private def checkCancelled(): Unit = cancelled.future.value.foreach(_.get)

  private def byJob(command: NodeCommand): Seq[(Int, Answer)] =
    NodeJob.run(sc, hosts, "a command to the ranks", settings.timeout,
      cancelled = cancelled.future, driver = { case Progress(part) => done = part })(
      node =>
        command.execute(node.hosts,
          part => if (node.isFirst) node.driver.ask[Unit](Progress(part))) {
          if (TaskContext.get().isInterrupted()) throw new TaskKilledException("cancelled")
        },
      isLast = (answers: Seq[(Int, Answer)]) =>
        answers.exists { case (_, answer) => !answer.isInstanceOf[Answer.Done] },
      othersSeconds = othersSeconds).flatten
}

private object RankCommands {
  /** All ranks fail together, but Spark may never start the task that waits for a slot. */
  private val othersSeconds = 10.0

  /** To the driver: how much of a routine is done. */
  final case class Progress(done: Double)
}

/**
 * Sends one command to all ranks of its node at once, because a routine begins only when all have
 * it, and returns their answers by rank.
 */
private[linalg] final class NodeCommand(
    configFiles: ConfigFiles, command: Command, timeout: Double) extends Serializable {
  import NodeCommand._

  /**
   * progress: gets how much of a routine is done on the first rank of the node. checkCancelled: is
   * called often, and throws if the caller is cancelled. The sockets are closed then, and the ranks
   * learn of it.
   */
  def execute(hosts: Hostfile, progress: Double => Unit)(
      checkCancelled: => Unit): Seq[(Int, Answer)] = {
    val pairs = PinnedTask.pairsHere(configFiles, hosts)
    val sockets = pairs.map { case (rank, pair) =>
      val show = if (rank == pairs.head._1) progress else (_: Double) => ()
      new RankSocket(rank, socketOf(pair.mappedFile), command, timeout, show)
    }
    val selector = Selector.open()
    try {
      sockets.foreach(_.open(selector))
      waitForAll(sockets, selector)(checkCancelled)
      sockets.map(socket => socket.rank -> socket.answer.get)
    } finally {
      sockets.foreach(_.close())
      selector.close()
    }
  }

  private def waitForAll(sockets: Seq[RankSocket], selector: Selector)(
      checkCancelled: => Unit): Unit = {
    val buffer = ByteBuffer.allocate(bufferBytes)
    var last = Option.empty[Deadline]
    while (sockets.exists(_.answer.isEmpty)) {
      selector.select(pollMillis)
      checkCancelled
      selector.selectedKeys.asScala.foreach { key =>
        key.attachment.asInstanceOf[RankSocket].proceed(key, buffer)
      }
      selector.selectedKeys.clear()
      sockets.foreach(_.checkDeadline())
      // When one rank is gone, mpirun ends the others, too: only their last words are waited for.
      if (last.isEmpty && sockets.exists(isOver)) last = Some(new Deadline(lastWordsSeconds))
      if (last.exists(_.passed)) sockets.foreach(_.lose("did not answer after another had ended"))
    }
  }

  private def isOver(socket: RankSocket): Boolean = socket.answer.exists {
    case Answer.Done(_, _) => false
    case _ => true
  }
}

private[linalg] object NodeCommand {
  private val bufferBytes = 1 << 20
  private val pollMillis = 100L
  private val lastWordsSeconds = 3.0

  /** Of a Unix domain socket's address, without the zero byte. */
  private val pathMax = 107

  private def socketOf(mappedFile: String): String = {
    val path = s"$mappedFile.server"
    if (path.getBytes(UTF_8).length > pathMax) throw new ConfigException(
      s"the socket $path has more than $pathMax bytes: choose a shorter folder")
    path
  }
}
