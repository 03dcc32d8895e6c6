package supply.sources.lmdb

import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

/** The native library of lmdbjni, which is unpacked into java.io.tmpdir and loaded from there. */
private[lmdb] object NativeLibrary {

  /**
   * lmdbjni removes the file when the JVM ends, which leaves it behind where that is killed. Once
   * loaded it is not needed.
   */
  def removeUnpacked(): Unit = removed

  private lazy val removed: Unit = unpacked().foreach(Files.deleteIfExists)

  /**
   * What this process has loaded of it, under the name with a random number that lmdbjni makes up:
   * one that somebody has installed is not among them.
   */
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
