package supply.testing

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

object TemporaryFolder {

  /** A new folder for the time of `body`. */
  def apply[A](body: Path => A): A = {
    val folder = Files.createTempDirectory("supply-test")
    try body(folder)
    finally {
      val all = Files.walk(folder)
      try all.iterator.asScala.toSeq.reverse.foreach(Files.delete)
      finally all.close()
    }
  }
}
