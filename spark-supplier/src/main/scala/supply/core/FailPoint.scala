package supply.core

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, NoSuchFileException, Path, Paths, StandardCopyOption}

/**
 * Lets a fault test kill, stop or fail this process directly after a step of proto/PROTOCOL.md. Off
 * unless the environment variable SUPPLY_FAIL_POINT names a file; for executors, set
 * `spark.executorEnv.SUPPLY_FAIL_POINT`. The file holds one line:
 *
 * {{{STEP:kill|stop|throw[:after=N]}}}
 *
 * The process that passes the step renames the file to FILE.PID and does what the line says.
 * P3:kill:after=5 kills at the sixth passing in a process; throw means a PairException. Because of
 * the file, it happens once, although the next attempt passes the same step, and a test sees that
 * it has happened. mpi-client/src/base/fail_point.c is the same for ranks.
 */
private[supply] object FailPoint {
  private val file: Path =
    Option(System.getenv("SUPPLY_FAIL_POINT")).filter(_.nonEmpty).map(Paths.get(_)).orNull
  private val armed: Boolean = file != null
  private var passed = 0
  private val After = "after=(.*)".r

  /** Costs nothing if no file is named: the JIT compiler knows that `armed` is constant. */
  def apply(step: String): Unit = if (armed) pass(step)

  // Checks for the file first, because an exception for each step would slow a soak test down.
  private def pass(step: String): Unit = if (file.toFile.exists()) {
    try Files.readString(file, UTF_8).trim.split(':') match {
        case Array(`step`, action) => count(action, 0)
        case Array(`step`, action, After(n)) => count(action, n.toInt)
        case _ => ()
      }
    catch { case _: NoSuchFileException => () }
  }

  private def count(action: String, after: Int): Unit = {
    val due = synchronized {
      passed += 1
      passed > after && take()
    }
    if (due) action match {
      case "kill" => signal("KILL")
      case "stop" => signal("STOP")
      case "throw" => throw new PairException("fail point")
    }
  }

  private def take(): Boolean =
    try {
      Files.move(file, file.resolveSibling(s"${file.getFileName}.${ProcessHandle.current().pid()}"),
        StandardCopyOption.ATOMIC_MOVE)
      passed = 0
      true
    } catch { case _: IOException => false }

  private def signal(name: String): Unit = {
    new ProcessBuilder("kill", s"-$name", ProcessHandle.current().pid().toString).start().waitFor()
    ()
  }
}
