package supply.core

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

/** What config files say: files that every node has, or texts, which travel with the tasks. */
private[supply] object ConfigText {
  /**
   * The lines of the text of that name, or of the file, if `texts` has no such name, without the byte order
   * mark that editors of Windows put in front.
   */
  def lines(name: String, texts: Map[String, String]): IndexedSeq[String] = {
    val all = texts.get(name).map(_.linesIterator.toIndexedSeq).getOrElse(
      Files.readAllLines(Paths.get(name), UTF_8).asScala.toIndexedSeq)
    all.take(1).map(_.stripPrefix("\ufeff")) ++ all.drop(1)
  }
}
