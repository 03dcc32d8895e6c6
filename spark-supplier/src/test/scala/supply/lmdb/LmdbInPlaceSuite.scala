package supply.lmdb

import java.io.RandomAccessFile
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.Path

import scala.util.Using

import com.google.protobuf.{ByteString, CodedOutputStream}
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite

import supply.core.SourceException
import supply.lmdb.CaffeProtos.{Datum => Proto}
import supply.source.{ElementCursor, ForeignFile, KeepingCursor, ShuffledCursor}
import supply.testing.{AllCases, Elements, TemporaryFolder}

/** A cursor in place has the elements of the one that copies: here its references are followed. */
class LmdbInPlaceSuite extends AnyFunSuite with AllCases {
  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 20)

  /** Reads what is referred to, from the file and not from LMDB. */
  private def followed(elements: Seq[Seq[Any]]): Seq[Seq[Any]] = elements.map(_.map {
    case (column, _: ForeignFile, _: Long, bytes: Int, start: Int, rest: Long) if bytes <= 12 =>
      val value = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN).putInt(start).putLong(rest)
      assert(value.array.drop(bytes).forall(_ == 0))
      column -> value.array.take(bytes).toSeq
    case (column, file: ForeignFile, offset: Long, bytes: Int, start: Int, _: Long) =>
      val value = new Array[Byte](bytes)
      Using.resource(new RandomAccessFile(file.path, "r")) { from =>
        from.seek(offset)
        from.readFully(value)
      }
      assert(ByteBuffer.wrap(value).order(ByteOrder.LITTLE_ENDIAN).getInt() == start)
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
    .setChannels(1).setHeight(1).setWidth(bytes).setData(
      ByteString.copyFrom(Array.tabulate(bytes)(at => (at * 7 + i).toByte))).build()

  private def inPlace(file: String, partition: LmdbPartition, window: Long,
      columns: IndexedSeq[Int] = Datum.Columns): LmdbInPlaceCursor =
    new LmdbInPlaceCursor(ForeignFile.find(file), partition, columns, window)

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

  test("more elements than are read ahead, and than there are places to keep them at first") {
    TemporaryFolder { folder =>
      val file = write(folder, (0 until 600).map(i => datum(i, i % 30)))
      val partition = LmdbPartition(0, TestLmdb.key(0), 600)
      def shuffled(cursor: KeepingCursor) = new ShuffledCursor(cursor, buffer = 400, seed = 5)
      val copied = elements(new LmdbCursor(file, partition))
      assert(copied.size == 600)
      assert(followed(elements(inPlace(file, partition, Long.MaxValue))) == copied)
      assert(followed(elements(shuffled(inPlace(file, partition, Long.MaxValue)))) ==
        elements(shuffled(new LmdbCursor(file, partition))))
    }
  }

  test("columns that are not wanted go nowhere, the others to their new places") {
    TemporaryFolder { folder =>
      val file = write(folder, (0 until 40).map(i => datum(i, i * 37 % 100)))
      val partition = LmdbPartition(0, TestLmdb.key(0), 40)
      val columns = IndexedSeq(Datum.Data, Datum.Label, Datum.Encoded)
      def shuffled(cursor: KeepingCursor) = new ShuffledCursor(cursor, buffer = 7, seed = 5)
      def selected = inPlace(file, partition, Long.MaxValue, columns)
      def expected(all: Seq[Seq[Any]]) = all.map { values =>
        def bytesOf(column: Int) = values(column).asInstanceOf[(Int, Any)]._2
        Seq(values(Datum.Label), 2 -> bytesOf(Datum.Encoded), 0 -> bytesOf(Datum.Data))
      }
      assert(followed(elements(selected)) == expected(elements(new LmdbCursor(file, partition))))
      assert(followed(elements(shuffled(selected))) ==
        expected(elements(shuffled(new LmdbCursor(file, partition)))))
      val numbers = elements(inPlace(file, partition, Long.MaxValue, IndexedSeq(Datum.Height)))
      assert(numbers == Seq.fill(40)(Seq(1)))
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
      val shape = Proto.newBuilder().setChannels(1).setHeight(1).setWidth(floats.size).build()
      val packed = ByteBuffer.allocate(2 + 4 * floats.size + shape.getSerializedSize).order(
        ByteOrder.LITTLE_ENDIAN)
      val out = CodedOutputStream.newInstance(packed)
      out.writeByteArray(Proto.FLOAT_DATA_FIELD_NUMBER,
        floats.foldLeft(ByteBuffer.allocate(4 * floats.size).order(ByteOrder.LITTLE_ENDIAN))(
          _.putFloat(_)).array)
      shape.writeTo(out)
      out.flush()
      val single = shape.toBuilder
      floats.foreach(single.addFloatData(_))
      def write(name: String, value: Array[Byte]): String =
        TestLmdb.write(folder.resolve(name), Seq(TestLmdb.key(1) -> value)).resolve(
          "data.mdb").toString
      val partition = LmdbPartition(0, TestLmdb.key(1), 1)
      val isPacked = write("packed", packed.array)
      assert(followed(elements(inPlace(isPacked, partition, Long.MaxValue))) ==
        elements(new LmdbCursor(isPacked, partition)))
      val cursor = inPlace(write("single", single.build().toByteArray), partition, Long.MaxValue)
      try {
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
}
