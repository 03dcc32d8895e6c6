package supply.testing

import java.nio.channels.FileChannel
import java.nio.file.{Path, Paths}
import java.nio.file.StandardOpenOption.WRITE

/** Another process that tries to lock a byte of a file exclusively, until it is closed. */
final class LockingProcess(path: Path, byte: Int) extends AutoCloseable {
  private val process = new ProcessBuilder(Paths.get(System.getProperty("java.home"), "bin",
      "java").toString, "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"),
    "supply.testing.LockingProcess", path.toString, byte.toString)
    .redirectError(ProcessBuilder.Redirect.INHERIT).start()

  /** Whether it has the lock; false: another process has it. */
  val hasLock: Boolean = process.inputReader().readLine().toBoolean

  override def close(): Unit = {
    process.destroyForcibly().waitFor()
    ()
  }
}

object LockingProcess {
  def main(args: Array[String]): Unit = {
    val channel = FileChannel.open(Paths.get(args(0)), WRITE)
    println(channel.tryLock(args(1).toLong, 1, false) != null)
    while (System.in.read() >= 0) {}
  }
}
