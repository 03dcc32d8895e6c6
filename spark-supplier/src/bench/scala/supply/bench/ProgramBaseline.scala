package supply.bench

import java.io.{BufferedReader, InputStreamReader}

/** A separate program that measures once for each line it reads (bench/c/rounds.h). */
private[bench] final class ProgramBaseline(command: Seq[String]) extends Baseline {
  private val process =
    new ProcessBuilder(command: _*).redirectError(ProcessBuilder.Redirect.INHERIT).start()
  private val answers = new BufferedReader(new InputStreamReader(process.getInputStream))

  override def measure(): Measured = {
    process.getOutputStream.write('\n')
    process.getOutputStream.flush()
    val line = answers.readLine()
    if (line == null) throw new IllegalStateException(
      s"${command.head} ended with status ${process.waitFor()}: see its message above")
    Json.read[Measured](line)
  }

  override def close(): Unit = {
    process.getOutputStream.close()
    process.waitFor()
    ()
  }
}
