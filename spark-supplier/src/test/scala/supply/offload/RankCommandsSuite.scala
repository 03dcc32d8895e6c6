package supply.offload

import java.net.{StandardProtocolFamily, UnixDomainSocketAddress}
import java.nio.channels.ServerSocketChannel

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.executor.SupplySettings
import supply.plan.Hostfile
import supply.testing.{LocalSpark, TemporaryFolder, TestRank}

/** Commands to a rank of this node that never answers. */
class RankCommandsSuite extends AnyFunSuite with LocalSpark {
  private def withSilentRank(body: RankCommands => Unit): Unit = TemporaryFolder { folder =>
    val files = TestRank.configFiles(folder, 1)
    val socket = UnixDomainSocketAddress.of(s"${files.read().head.mappedFile}.server")
    Using.resource(ServerSocketChannel.open(StandardProtocolFamily.UNIX)) { server =>
      server.bind(socket)
      val settings = SupplySettings(1, files.mappedFiles, files.namedPipes, timeout = 600)
      Using.resource(new RankCommands(sc, settings, Hostfile.oneNode(1)))(body)
    }
  }

  test("an interrupt ends a command") {
    withSilentRank { commands =>
      Thread.currentThread().interrupt()
      intercept[InterruptedException](commands.send(Command.of("status", dataMax = 0)(_ => ())))
    }
  }
}
