package supply.results

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import supply.core.SupplyException
import supply.testing.{BlockFileBytes, TemporaryFolder}

/** Results that ranks have written (proto/golden/README.md), and damaged ones. */
class GoldenResultsSuite extends AnyFunSuite {
  private val golden: Path = Paths.get("../proto/golden")

  private def read(name: String): Array[Byte] =
    Files.readAllBytes(golden.resolve(name))

  private def rows(bytes: Array[Byte]): Seq[Seq[Any]] = TemporaryFolder { folder =>
    ReadBlocks.rows(BlockFileBytes.write(folder.resolve("pair.r.result"), bytes))
  }

  test("every value of the golden result is read") {
    val wide = Seq.fill(2000)(_: Byte)
    assert(rows(read("rank.predictions.result")) == Seq(
      Seq[Any](10L, 0.5f, "seven", true, Seq(1f, 2f, 3f), 0, "a/b\\".getBytes.toSeq :+ 0xff.toByte),
      Seq[Any](11L, null, "", false, Seq(4f, 5f, 6f), -1, Seq()),
      Seq[Any](12L, -2f, null, true, Seq(7f, 8f, 9f), 20000, wide('k')),
      Seq[Any](13L, 1e30f, "été", false, Seq(10f, 11f, 12f), null, wide('K')),
      Seq[Any](14L, 4f, "x", true, Seq(13f, 14f, 15f), 5, "end".getBytes.toSeq)))
  }

  test("the golden result with a wide schema has its names and values") {
    val bytes = read("rank.wide.result")
    assert(rows(bytes) == Seq(Seq(1, 7), Seq(2, 8), Seq(3, 9)))
    TemporaryFolder { folder =>
      val file = BlockFile.open(BlockFileBytes.write(folder.resolve("pair.r.result"), bytes), None)
      try assert(file.header.schema.columns.map(_.name) == Seq("", "wide" * 50))
      finally file.close()
    }
  }

  test("every value of the golden result of nested columns is read") {
    assert(rows(read("rank.nested.result")) == Seq(
      Seq[Any](Seq[Any](1, null), Seq[Any]("a", 7), Map("k" -> 1), Seq(Seq(true), Seq(false)), 1),
      Seq[Any](null, Seq[Any](null, 8), Map(), Seq(Seq(true), Seq()), 2),
      Seq[Any](Seq(3, 4, 5), null, Map("l" -> null), Seq(Seq(true), Seq(false, true)), 3)))
  }

  test("the golden result without a block is empty") {
    assert(rows(read("rank.empty.result")) == Seq())
  }

  /** file, offset, bytes, reader, names (proto/golden/README.md). */
  private val mustFail =
    Files.readAllLines(golden.resolve("must-fail.tsv")).asScala.toSeq.tail.map(_.split("\t"))
      .filter(_(3) == "spark")

  test("there are golden files that Spark must refuse") {
    assert(mustFail.nonEmpty)
  }

  mustFail.foreach { row =>
    val Seq(name, offset, hex, _, names) = row.toSeq: @unchecked
    test(s"$name with $hex at $offset is refused, naming $names") {
      val bytes = read(name)
      val damaged = if (hex == "cut") bytes.take(offset.toInt)
      else bytes.patch(offset.toInt, hex.grouped(2).map(Integer.parseInt(_, 16).toByte).toSeq,
        hex.length / 2)
      assert(intercept[SupplyException](rows(damaged)).getMessage.contains(names))
    }
  }
}
