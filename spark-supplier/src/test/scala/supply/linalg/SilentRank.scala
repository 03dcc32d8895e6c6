package supply.linalg

import java.net.{StandardProtocolFamily, UnixDomainSocketAddress}
import java.nio.channels.ServerSocketChannel

import scala.util.Using

import org.apache.spark.SparkContext

import supply.plan.Hostfile
import supply.task.SupplySettings
import supply.testing.{TemporaryFolder, TestRank}
import supply.testing.Background.{inBackground, result}

/** A rank of this node that takes commands, and never answers. */
private[supply] final class SilentRank(
    val settings: SupplySettings, val commands: RankCommands, server: ServerSocketChannel) {
  def send(continues: Boolean = false): Seq[Answer] =
    commands.send(Command.of("status", dataMax = 0)(_ => ()), continues)

  /** Sends a command, and cancels it when the rank has its connection. */
  def sendAndCancel(): Seq[Answer] = {
    val sent = inBackground(send())
    Using.resource(server.accept()) { _ =>
      commands.cancel()
      result(sent)
    }
  }
}

private[supply] object SilentRank {
  def apply(sc: SparkContext)(body: SilentRank => Any): Unit = TemporaryFolder { folder =>
    val files = TestRank.configFiles(folder, 1)
    val socket = UnixDomainSocketAddress.of(s"${files.read().head.mappedFile}.server")
    Using.resource(ServerSocketChannel.open(StandardProtocolFamily.UNIX)) { server =>
      server.bind(socket)
      val settings = SupplySettings(1, files.mappedFiles, files.namedPipes, timeout = 600)
      val commands = new RankCommands(sc, settings, Hostfile.oneNode(1))
      body(new SilentRank(settings, commands, server))
    }
    ()
  }
}
