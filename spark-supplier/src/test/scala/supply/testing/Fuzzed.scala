package supply.testing

import java.nio.file.{Files, Path}
import java.nio.file.attribute.PosixFilePermissions

import supply.core.SupplyException

/** What the fuzzers share. spark-supplier/src/test/fuzz/run says how they run. */
object Fuzzed {
  private lazy val folder = {
    val made = Files.createTempDirectory("supply-fuzz")
    sys.addShutdownHook(TemporaryFolder.delete(made))
    made
  }

  /** A file of this user with these bytes. The next call of this thread changes it. */
  def file(name: String, bytes: Array[Byte]): Path = {
    val path = folder.resolve(name)
    if (!Files.exists(path)) Files.createFile(path,
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))
    Files.write(path, bytes)
  }

  /** Bytes that are refused have a SupplyException. Any other error is a finding. */
  def refusedOrRead(read: => Any): Unit =
    try { read; () }
    catch { case _: SupplyException => () }
}
