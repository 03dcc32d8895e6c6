package supply.sources.lmdb

import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

/**
 * The native library of lmdbjni. A JVM loads libraries only from files, so lmdbjni unpacks a copy
 * per process into java.io.tmpdir; this removes the copy at once. To avoid the copy, install the
 * library and name its folder by -Dlibrary.lmdbjni.path.
 */
private[lmdb] object NativeLibrary {
  /**
   * Removes the loaded copy, which is no longer needed. lmdbjni itself would remove it at the exit
   * of the JVM, and a killed JVM would leave it.
   */
  def removeUnpacked(): Unit = removed

  private lazy val removed: Unit = unpacked().foreach(Files.deleteIfExists)

  /** The copies that this process has mapped; an installed library's name has no random number. */
  private def unpacked(): Seq[Path] = {
    val folder = Paths.get(System.getProperty("java.io.tmpdir")).toRealPath()
    Files.readAllLines(Paths.get("/proc/self/maps"), ISO_8859_1).asScala.toSeq
      .map(_.split(" +", 6)).collect {
        case Array(_, _, _, _, _, file) if file.startsWith("/") => Paths.get(file)
      }
      .filter(path =>
        path.getParent == folder && path.getFileName.toString.matches(
          "liblmdbjni-.*\\d{10,}\\..+")).distinct
  }
}
