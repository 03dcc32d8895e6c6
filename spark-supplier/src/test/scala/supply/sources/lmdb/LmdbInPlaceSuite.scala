package supply.sources.lmdb

import java.io.RandomAccessFile
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.Path

import scala.util.Using

import com.google.protobuf.{ByteString, CodedOutputStream}
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import supply.core.SourceException
import supply.data.{ElementCursor, ElementWriter, ForeignFile, KeepingCursor, ShuffledCursor}
import supply.sources.lmdb.CaffeProtos.{Datum => Proto}
import supply.testing.{Elements, TemporaryFolder}

/** A cursor in place has the elements of the one that copies: here its references are followed. */
class LmdbInPlaceSuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 20)

  /** Reads what is referred to, from the file and not from LMDB. */
  private def followed(elements: Seq[Seq[Any]]): Seq[Seq[Any]] = elements.map(_.map {
    case (column, file: ForeignFile, offset: Long, bytes: Int, start: Int) =>
      val value = new Array[Byte](bytes)
      Using.resource(new RandomAccessFile(file.path, "r")) { from =>
        from.seek(offset)
        from.readFully(value)
      }
      assert(bytes > 12 && ByteBuffer.wrap(value).order(ByteOrder.LITTLE_ENDIAN).getInt() == start)
      column -> value.toSeq
    case copied => copied
  })

  private def elements(cursor: ElementCursor): Seq[Seq[Any]] =
    try Elements.all(cursor)
    finally cursor.close()

  private def write(folder: Path, datums: Seq[Proto]): String = TestLmdb.write(
    folder.resolve("db"),
    datums.zipWithIndex.map { case (datum, i) => TestLmdb.key(i) -> datum.toByteArray })
    .resolve("data.mdb").toString

  private def datum(i: Int, bytes: Int): Proto = TestLmdb.datum(i).toBuilder.setEncoded(i % 2 == 0)
    .setData(ByteString.copyFrom(Array.tabulate(bytes)(at => (at * 7 + i).toByte))).build()

  private def inPlace(file: String, partition: LmdbPartition, window: Long): LmdbInPlaceCursor =
    new LmdbInPlaceCursor(ForeignFile.find(file), partition, window)

  // Inline, in a leaf page, in an overflow page, and in several.
  private val sizes = Gen.listOf(Gen.oneOf(0, 1, 11, 12, 13, 784, 2000, 4096, 5000, 20000))

  test("elements of any size, in order and shuffled, mapped as a whole and in windows") {
    forAll(sizes, Gen.choose(1, 50), Gen.long) { (sizes, buffer, seed) =>
      TemporaryFolder { folder =>
        val file = write(folder, sizes.zipWithIndex.map { case (bytes, i) => datum(i, bytes) })
        val partition = LmdbPartition(0, TestLmdb.key(0), sizes.size)
        def shuffled(cursor: KeepingCursor) = new ShuffledCursor(cursor, buffer, seed)
        val copied = elements(new LmdbCursor(file, partition))
        val drawn = elements(shuffled(new LmdbCursor(file, partition)))
        Seq(1L, 3000L, Long.MaxValue).foreach { window =>
          assert(followed(elements(inPlace(file, partition, window))) == copied)
          assert(followed(elements(shuffled(inPlace(file, partition, window)))) == drawn)
        }
      }
    }
  }

  test("a partition begins and ends where the plan says") {
    TemporaryFolder { folder =>
      val file = TestLmdb.numbered(folder.resolve("db"), 300).resolve("data.mdb").toString
      val partition = LmdbPartition(1, TestLmdb.key(100), 50)
      assert(followed(elements(inPlace(file, partition, Long.MaxValue))) ==
        elements(new LmdbCursor(file, partition)))
    }
  }

  test("packed float_data is read in place, and floats one by one are refused by their key") {
    TemporaryFolder { folder =>
      val floats = Seq(1.5f, -2f, 3f, 4f, 0.25f)
      val packed = ByteBuffer.allocate(2 + 4 * floats.size).order(ByteOrder.LITTLE_ENDIAN)
      val out = CodedOutputStream.newInstance(packed)
      out.writeByteArray(Proto.FLOAT_DATA_FIELD_NUMBER,
        floats.foldLeft(ByteBuffer.allocate(4 * floats.size).order(ByteOrder.LITTLE_ENDIAN))(
          _.putFloat(_)).array)
      out.flush()
      val single = Proto.newBuilder()
      floats.foreach(single.addFloatData(_))
      val file = TestLmdb.write(folder.resolve("db"),
        Seq(TestLmdb.key(0) -> packed.array,
          TestLmdb.key(1) -> single.build().toByteArray)).resolve("data.mdb").toString
      val partition = LmdbPartition(0, TestLmdb.key(0), 2)
      val copied = elements(new LmdbCursor(file, partition))
      assert(copied.head.last == copied.last.last)
      val cursor = inPlace(file, partition, Long.MaxValue)
      try {
        assert(followed(Elements.all(new First(cursor))) == copied.take(1))
        val message = intercept[SourceException](cursor.next()).getMessage
        assert(message.contains("float_data of key '00000001'") && message.contains("--in-place"))
      } finally cursor.close()
    }
  }

  test("a value that is not a Datum is named by its key") {
    TemporaryFolder { folder =>
      val file = TestLmdb.write(folder.resolve("db"),
        Seq(TestLmdb.key(0) -> "no datum".getBytes)).resolve("data.mdb").toString
      val cursor = inPlace(file, LmdbPartition(0, TestLmdb.key(0), 1), Long.MaxValue)
      try assert(intercept[SourceException](cursor.next()).getMessage.contains(
            "'00000000' of the LMDB"))
      finally cursor.close()
    }
  }

  /** Only the next element of a cursor. */
  private final class First(cursor: ElementCursor) extends ElementCursor {
    private var isFirst = true
    override def next(): Boolean = isFirst && { isFirst = false; cursor.next() }
    override def write(to: ElementWriter): Unit = cursor.write(to)
    override def describe: String = cursor.describe
    override def close(): Unit = ()
  }
}
