package supply.driver

import java.nio.charset.StandardCharsets.UTF_8

import supply.core.Size
import supply.executor.SupplySettings
import supply.pair.ConfigFiles
import supply.plan.Hostfile
import supply.testing.Fuzzed

/** Texts of users: config files, host files, sizes and saved positions. */
object TextsFuzzer {
  def fuzzerTestOneInput(input: Array[Byte]): Unit = {
    val text = new String(input, UTF_8)
    Fuzzed.refusedOrRead(Size.bytes("size", text))
    Fuzzed.refusedOrRead(
      ResumePositions.of(SupplySettings(1, "", "", resumePositions = Some(text))))
    val file = Fuzzed.file("fuzzed.conf", input).toString
    Fuzzed.refusedOrRead(Hostfile.read(file, 2))
    Fuzzed.refusedOrRead(ConfigFiles(file, file).read())
  }
}
