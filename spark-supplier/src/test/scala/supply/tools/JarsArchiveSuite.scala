package supply.tools

import java.io.File
import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import supply.testing.TemporaryFolder

class JarsArchiveSuite extends AnyFunSuite {
  private def of(jars: (String, String)*): String = TemporaryFolder { folder =>
    JarsArchive.fingerprint(jars.map { case (name, content) =>
      Files.writeString(folder.resolve(name), content).toFile: File
    })
  }

  test("the fingerprint differs if any jar does, also with equal names and lengths") {
    val jars = Seq("a.jar" -> "Spark 1", "b.jar" -> "more")
    assert(of(jars: _*) == of(jars: _*))
    val others = Seq(Seq("a.jar" -> "Spark 2", "b.jar" -> "more"),
      Seq("a.jar" -> "Spark 1", "b.jar" -> "move"), Seq("a.jar" -> "Spark 1", "c.jar" -> "more"),
      jars.take(1))
    assert((jars +: others).map(of(_: _*)).distinct.size == 5)
  }
}
