package supply.run

import java.nio.charset.StandardCharsets.UTF_8

import supply.core.Size
import supply.pair.ConfigFiles
import supply.plan.Hostfile
import supply.task.SupplySettings
import supply.testing.Fuzzed

/** Texts of users: config files, host files, sizes and saved positions. */
object TextsFuzzer {
  def fuzzerTestOneInput(input: Array[Byte]): Unit = {
    val text = new String(input, UTF_8)
    Fuzzed.refusedOrRead(Size.bytes("size", text))
    Fuzzed.refusedOrRead(
      ResumePositions.of(SupplySettings(1, "", "", resumePositions = Some(text))))
    Fuzzed.refusedOrRead(Hostfile.read(Fuzzed.file("hosts", input).toString, 2))
    readConfigFiles(input)
  }

  /** An input is both files, as in mpi-client/fuzz/config_files.cc. */
  private def readConfigFiles(input: Array[Byte]): Unit = {
    val end = input.indexOfSlice(Separator)
    val (mappedFiles, namedPipes) =
      if (end < 0) (input, Array.emptyByteArray)
      else (input.take(end), input.drop(end + Separator.length))
    Fuzzed.refusedOrRead(
      ConfigFiles(Fuzzed.file("mapped-files.conf", mappedFiles).toString,
        Fuzzed.file("named-pipes.conf", namedPipes).toString).read())
  }

  private val Separator = "---".getBytes(UTF_8)
}
