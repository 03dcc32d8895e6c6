package supply.offload

import java.nio.ByteBuffer
import java.nio.channels.Selector
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.spark.{TaskContext, TaskKilledException}

import supply.core.{ConfigException, Deadline}
import supply.executor.PinnedTask
import supply.pair.ConfigFiles
import supply.plan.Hostfile

/**
 * Sends one command to all ranks of its node at once, because a routine begins only when all have
 * it, and returns their answers by rank. If its task is cancelled it closes the sockets, and the
 * ranks learn of it.
 */
private[offload] final class NodeCommand(configFiles: ConfigFiles, hosts: Hostfile,
    command: Command, timeout: Double) extends Serializable {
  import NodeCommand._

  def execute(): Seq[(Int, Answer)] = {
    val ranks = hosts.places.indices.filter(rank => hosts.places(rank).isOn(PinnedTask.host))
    val pairs = configFiles.read(ranks.map(hosts.places(_).localRank).max + 1)
    val sockets = ranks.map { rank =>
      val path = s"${pairs(hosts.places(rank).localRank).mappedFile}.server"
      if (path.getBytes(UTF_8).length > pathMax) throw new ConfigException(
        s"the socket $path has more than $pathMax bytes: choose a shorter folder")
      new RankSocket(rank, path, command, timeout)
    }
    val selector = Selector.open()
    try {
      sockets.foreach(_.open(selector))
      waitForAll(sockets, selector)
      sockets.map(socket => socket.rank -> socket.answer.get)
    } finally {
      sockets.foreach(_.close())
      selector.close()
    }
  }

  private def waitForAll(sockets: Seq[RankSocket], selector: Selector): Unit = {
    val buffer = ByteBuffer.allocate(bufferBytes)
    var last = Option.empty[Deadline]
    while (sockets.exists(_.answer.isEmpty)) {
      selector.select(pollMillis)
      if (TaskContext.get().isInterrupted()) throw new TaskKilledException("cancelled")
      selector.selectedKeys.asScala.foreach(_.attachment.asInstanceOf[RankSocket].read(buffer))
      selector.selectedKeys.clear()
      sockets.foreach(_.checkDeadline())
      // When one rank is gone, mpirun ends the others, too: only their last words are waited for.
      if (last.isEmpty && sockets.exists(isOver)) last = Some(new Deadline(lastWordsSeconds))
      if (last.exists(_.passed)) sockets.foreach { socket =>
        if (socket.answer.isEmpty)
          socket.answer =
            Some(Answer.Lost(s"rank ${socket.rank} did not answer after another had ended"))
      }
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
}
