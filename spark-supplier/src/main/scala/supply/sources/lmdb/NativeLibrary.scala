package supply.sources.lmdb

import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

/**
 * lmdbjni's native library. Each JVM loads a copy in java.io.tmpdir, which this removes at once. To
 * avoid the copy, install the library and name its folder by -Dlibrary.lmdbjni.path.
 */
private[lmdb] object NativeLibrary {
  /** Removes the loaded copy. lmdbjni does it when the JVM exits, and never if it is killed. */
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
