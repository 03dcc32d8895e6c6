package supply.linalg

import java.nio.channels.Selector
import java.nio.file.{Files, Path, Paths}
import java.nio.file.attribute.PosixFilePermissions

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.testing.TemporaryFolder
import supply.testing.Background.{inBackground, result}

/** Who may answer a command. */
class RankSocketSuite extends AnyFunSuite {
  private val listen =
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); " +
      "print('listening', flush=True); s.accept()[0].recv(1) and print('a command', flush=True)"

  /** What a process of another user prints that listens on the socket. */
  private def withOtherUser(socket: Path)(body: => Any): String = {
    val process =
      new ProcessBuilder("setpriv", "--reuid=61001", "--clear-groups", "/usr/bin/python3", "-c",
        listen, socket.toString).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    try {
      val lines = process.inputReader()
      def line() = result(inBackground(lines.readLine()))
      assert(line() == "listening")
      body
      line()
    } finally {
      process.destroyForcibly().waitFor()
      ()
    }
  }

  test("a program of another user gets no command, whatever its socket is called") {
    assume(Files.getAttribute(Paths.get("/proc/self"), "unix:uid") == 0,
      "needs root, to start a process of another user")
    TemporaryFolder { folder =>
      Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"))
      val path = folder.resolve("pair-0.mapped.server")
      val command = Command.of("status", dataMax = 0)(_ => ())
      val received = withOtherUser(path) {
        Using.resource(new RankSocket(0, path.toString, command, 10, _ => ())) { socket =>
          Using.resource(Selector.open())(socket.open)
          val text = socket.answer.collect { case lost: Answer.Lost => lost.text }
          assert(text.exists(_.contains("the socket is of 61001")))
        }
      }
      assert(received == null)
    }
  }
}
