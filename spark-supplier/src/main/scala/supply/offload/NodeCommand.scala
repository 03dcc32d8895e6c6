package supply.offload

import java.nio.ByteBuffer
import java.nio.channels.Selector
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import supply.core.{ConfigException, Deadline}
import supply.executor.PinnedTask
import supply.pair.ConfigFiles
import supply.plan.Hostfile

/**
 * Sends one command to all ranks of its node at once, because a routine begins only when all have
 * it, and returns their answers by rank.
 */
private[offload] final class NodeCommand(configFiles: ConfigFiles, hosts: Hostfile,
    command: Command, timeout: Double) extends Serializable {
  import NodeCommand._

  /**
   * progress: gets how much of a routine is done on the first rank of the node. checkCancelled: is
   * called often, and throws if the caller is cancelled. The sockets are closed then, and the ranks
   * learn of it.
   */
  def execute(progress: Double => Unit)(checkCancelled: => Unit): Seq[(Int, Answer)] = {
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

private[offload] object NodeCommand {
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
