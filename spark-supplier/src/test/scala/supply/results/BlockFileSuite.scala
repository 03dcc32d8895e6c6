package supply.results

import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.nio.file.StandardOpenOption.WRITE
import java.nio.file.attribute.PosixFilePermissions

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, ContractException, PairException}
import supply.protocol.{Column, Schema}
import supply.protocol.Layout.Constant
import supply.testing.{BlockFileBytes, LockingProcess, TemporaryFolder}

/** What Spark reads from a block file, type by type, and which files it refuses. */
class BlockFileSuite extends AnyFunSuite {
  import BlockFileSuite._

  private def withFile[A](bytes: Array[Byte])(body: (Path, BlockFile) => A): A =
    TemporaryFolder { folder =>
      val path = BlockFileBytes.write(folder.resolve("pair-0.mapped.r.result"), bytes)
      val file = BlockFile.open(path, None)
      try body(path, file)
      finally file.close()
    }

  /** All values of a column. */
  private def valuesOf(column: Column, blocks: Seq[Seq[Any]]): Seq[Any] = {
    val bytes = BlockFileBytes(Schema(IndexedSeq(column)), blocks.map(Seq(_)))
    TemporaryFolder { folder =>
      ReadBlocks.rows(BlockFileBytes.write(folder.resolve("pair.r.result"), bytes)).map(_.head)
    }
  }

  types.foreach { case (column, values, expected) =>
    val format = column.format + column.childFormat
    test(s"the values of $format are read, in two blocks, without nulls") {
      assert(valuesOf(column, Seq(values, values.reverse)) == (expected ++ expected.reverse))
    }

    test(s"the values of $format are read beside nulls") {
      val nulls = Seq.fill(9)(null)
      assert(valuesOf(column.copy(nullable = true), Seq(nulls ++ values :+ null)) ==
        (nulls ++ expected :+ null))
    }
  }

  test("more columns than fit before the blocks, and names of any text") {
    val names = Seq("", "a.b\n😀", "n" * 60000) ++ (0 until 5000).map(i => s"column_$i")
    val bytes = BlockFileBytes(Schema(names.map(Column(_, "i")).toIndexedSeq),
      Seq(names.indices.map(i => Seq(i, -i)), names.indices.map(i => Seq(7 * i))),
      blockBytes = 1 << 19)
    withFile(bytes) { (path, file) =>
      assert(file.header.schema.columns.map(_.name) == names)
      assert(ReadBlocks.rows(path) == Seq(names.indices, names.indices.map(-_),
        names.indices.map(7 * _)))
    }
  }

  test("a file without a block has a schema and no elements") {
    withFile(BlockFileBytes(Schema(IndexedSeq(Column("a", "i"))), Nil)) { (_, file) =>
      assert(file.header.elements == 0 && file.header.blockCount == 0)
      assert(file.header.schema.columns.map(_.name) == Seq("a"))
    }
  }

  test("text keeps its bytes, and Spark never reads past those that end inside a character") {
    def check(text: Array[Byte]): Unit =
      withFile(BlockFileBytes(Schema(IndexedSeq(Column("t", "u"))), Seq(Seq(Seq(text))))) {
        (_, file) =>
          val found = file.block(0, 0).vector(0).getUTF8String(0)
          assert(found.getBytes.toSeq == text.toSeq)
          // Other memory follows it, which is long enough.
          val isCut = !text.sameElements(new String(text, UTF_8).getBytes(UTF_8))
          found.getBaseObject match {
            case copied: Array[Byte] => assert(isCut && copied.length >= text.length + 3)
            case _ => assert(!isCut || found.reverse().numBytes == text.length)
          }
      }
    Seq(Seq(0xc3), Seq(0xe2, 0x82), Seq(0xe2), Seq(0xf0, 0x9f, 0x98), Seq(0xe2, 'x'.toInt),
      Seq(0xf0, 'x'.toInt, 'x'.toInt), Seq(0xc3, 'x'.toInt)).foreach(last =>
      check(Array.fill(9)('x'.toByte) ++ last.map(_.toByte)))
    Seq("é", "€", "😀", "").foreach(text => check(text.getBytes(UTF_8)))
  }

  test("an unknown format is refused by the column's name") {
    Seq(Column("odd", "vu"), Column("odd", "+w:3", childFormat = "u"), Column("odd", "d:40,1"),
      Column("odd", "+w:99999999999", childFormat = "i"),
      Column("odd", "+w:2147483647", childFormat = "g")).foreach { odd =>
      val bytes = BlockFileBytes(Schema(IndexedSeq(Column("a", "i"), odd)), Nil)
      val text = intercept[ContractException](withFile(bytes)((_, _) => ())).getMessage
      assert(text.contains("'odd'") && text.contains(odd.format), text)
    }
  }

  test("a decimal with too many digits is refused") {
    Seq(Column("d", "d:5,2") -> BigInt(100000), Column("d", "d:5,2") -> (BigInt(1) << 64),
      Column("d", "d:38,0") -> BigInt(10).pow(38)).foreach { case (column, value) =>
      val text = intercept[ContractException](valuesOf(column, Seq(Seq(value)))).getMessage
      assert(text.contains("'d'") && text.contains("digits"))
    }
  }

  test("a file that was cut is refused with its two sizes") {
    val bytes = BlockFileBytes(Schema(IndexedSeq(Column("a", "i"))), Seq(Seq(Seq(1))))
    withFile(bytes) { (path, file) =>
      val channel = FileChannel.open(path, WRITE)
      try channel.truncate(bytes.length.toLong - 1)
      finally channel.close()
      val text = intercept[ContractException](file.requireWhole()).getMessage
      assert(text.contains(path.toString) && text.contains(s"${bytes.length - 1} bytes") &&
        text.contains(s"file_bytes is ${bytes.length}"))
      assert(intercept[ContractException](BlockFile.open(path, None)).getMessage.contains(
          "file_bytes"))
    }
  }

  test("a file that is removed or replaced before it is locked is not opened") {
    val bytes = BlockFileBytes(Schema(IndexedSeq(Column("a", "i"))), Nil)
    TemporaryFolder { folder =>
      Seq[Path => Any](Files.delete(_), BlockFileBytes.write(_, bytes)).foreach { change =>
        val path = BlockFileBytes.write(folder.resolve("pair.r.result"), bytes)
        val file = NamedFile.open(path, None)
        change(path)
        assert(intercept[PairException](BlockFile.open(file)).getMessage.contains(
            "removed or replaced"))
        assert(!file.channel.isOpen)
      }
    }
  }

  test("a file is not opened while a cleaner has it locked") {
    TemporaryFolder { folder =>
      val path = BlockFileBytes.write(folder.resolve("pair.r.result"),
        BlockFileBytes(Schema(IndexedSeq(Column("a", "i"))), Nil))
      Using.resource(new LockingProcess(path, Constant.READER_LOCK_BYTE)) { cleaner =>
        assert(cleaner.hasLock)
        assert(intercept[PairException](BlockFile.open(path, None)).getMessage.contains(
            "READER_LOCK_BYTE"))
      }
      BlockFile.open(path, None).close()
    }
  }

  test("a file that everybody can use is refused") {
    val bytes = BlockFileBytes(Schema(IndexedSeq(Column("a", "i"))), Nil)
    withFile(bytes) { (path, _) =>
      Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-r--r--"))
      Files.setPosixFilePermissions(path.getParent, PosixFilePermissions.fromString("rwxr-xr-x"))
      assert(intercept[ConfigException](BlockFile.open(path, None)).getMessage.contains(
          "everybody"))
    }
  }
}

private object BlockFileSuite {
  /** A column, values as BlockFileBytes takes them, and the same as ReadBlocks shows Spark's. */
  val types: Seq[(Column, Seq[Any], Seq[Any])] = Seq(
    same("b", true, false, true),
    same("c", Byte.MinValue, Byte.MaxValue),
    (Column("a", "C"), Seq(0, 255), Seq(0.toShort, 255.toShort)),
    same("s", Short.MinValue, Short.MaxValue),
    (Column("a", "S"), Seq(0, 65535), Seq(0, 65535)),
    same("i", Int.MinValue, Int.MaxValue),
    (Column("a", "I"), Seq(0, 4294967295L), Seq(0L, 4294967295L)),
    same("l", Long.MinValue, Long.MaxValue),
    (Column("a", "L"), Seq(BigInt(7), (BigInt(1) << 64) - 1),
      Seq(decimal("7"), decimal("18446744073709551615"))),
    same("f", 1.5f, Float.NegativeInfinity),
    same("g", -1.5, Double.MaxValue),
    same("tdD", -1, 20000),
    same("tsu:UTC", -1L, 1700000000000000L),
    same("tsu:Europe/Berlin", 1L, 2L),
    same("tsu:", 1L, 2L),
    (Column("a", "d:5,2"), Seq(BigInt(-12345), BigInt(1)),
      Seq(decimal("-123.45"), decimal("0.01"))),
    (Column("a", "d:38,3"), Seq(BigInt(10).pow(38) - 1, BigInt(-1)),
      Seq(decimal("99999999999999999999999999999999999.999"), decimal("-0.001"))),
    (Column("a", "u"), Seq("", "a", "Grüße", "x" * 100),
      Seq("", "a", "Grüße", "x" * 100)),
    (Column("a", "z"), Seq(Array[Byte](), Array[Byte](0, -1)),
      Seq(Seq(), Seq[Byte](0, -1)))) ++ Seq[(String, Seq[Any], Seq[Any])](
    ("c", Seq(1, -1), Seq[Byte](1, -1)), ("C", Seq(255), Seq[Short](255)),
    ("s", Seq(-2, 3), Seq[Short](-2, 3)), ("S", Seq(65535), Seq(65535)),
    ("i", Seq(-2, 3), Seq(-2, 3)),
    ("I", Seq(4294967295L), Seq(4294967295L)), ("l", Seq(-2L, 3L), Seq(-2L, 3L)),
    ("L", Seq((BigInt(1) << 64) - 1), Seq(decimal("18446744073709551615"))),
    ("f", Seq(1.5f, -2f), Seq(1.5f, -2f)), ("g", Seq(1.5, -2.0), Seq(1.5, -2.0))).map {
    case (child, list, expected) =>
      (Column("a", s"+w:${list.size}", childFormat = child), Seq(list, list.reverse),
        Seq(expected, expected.reverse))
  }

  private def same(format: String, values: Any*) = (Column("a", format), values, values)

  private def decimal(text: String) = new java.math.BigDecimal(text)
}
