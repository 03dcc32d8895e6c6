package supply.testing

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

object TemporaryFolder {

  /** Runs `body` with a new folder, and removes the folder. */
  def apply[A](body: Path => A): A = {
    val folder = Files.createTempDirectory("supply-test")
    try body(folder)
    finally delete(folder)
  }

  /** Removes a folder with all that is in it. */
  def delete(folder: Path): Unit = {
    val all = Files.walk(folder)
    try all.iterator.asScala.toSeq.reverse.foreach(Files.delete)
    finally all.close()
  }
}
