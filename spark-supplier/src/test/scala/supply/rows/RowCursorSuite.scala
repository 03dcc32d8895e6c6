package supply.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SpecificInternalRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

import supply.source.{BatchWriter, ShuffledCursor}
import supply.testing.Elements

class RowCursorSuite extends AnyFunSuite {
  private val schema = new StructType()
    .add("number", IntegerType, nullable = false)
    .add("long", LongType)
    .add("flag", BooleanType, nullable = false)
    .add("text", StringType)
    .add("money", DecimalType(30, 2), nullable = false)
    .add("list", ArrayType(FloatType, containsNull = false), nullable = false)

  private val columns = RowColumn.of(schema, RowCursorSuite.shapes(schema, 2)).toArray

  private def row(i: Int): InternalRow = InternalRow(
    i,
    if (i % 3 == 0) null else Long.MaxValue - i,
    i % 2 == 0,
    UTF8String.fromString("text" * (i * 37 % 300)),
    Decimal(BigDecimal(i).setScale(2), 30, 2),
    new GenericArrayData(Array(i.toFloat, -i.toFloat)))

  private def rows: Iterator[InternalRow] = Iterator.range(0, 200).map(row)

  /** As Spark's operators return them: each row in the memory of the last one. */
  private def unsafeRows: Iterator[InternalRow] = {
    val projection = UnsafeProjection.create(schema)
    rows.map(projection)
  }

  private def mutableRows: Iterator[InternalRow] = {
    val values = new SpecificInternalRow(schema)
    rows.map { row =>
      schema.fields.indices.foreach(i => values.update(i, row.get(i, schema(i).dataType)))
      values
    }
  }

  test(
    "rows of a batch are kept in pieces of at most 256 rows or 1 MiB, which are copied once more") {
    val text =
      RowColumn.of(new StructType().add("text", StringType), IndexedSeq(Shape.Unknown)).head
    for ((size, count, most) <- Seq((3, 1000, 256), (150000, 20, 6), (3000000, 5, 1))) {
      var pieces = Seq.empty[Int]
      val copy = new ColumnCopy(text) {
        override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
          true
        override def bytes(from: Int, count: Int): Long = size.toLong * count
        override protected def writeValues(
            from: Int, count: Int, entry: Int, to: BatchWriter): Unit = {
          pieces :+= count
          val space = to.reserveBytes(entry, Array.fill(count)(size), 0, count)
          (from until from + count).foreach(row => space.put(Array.fill(size)(row.toByte)))
        }
      }
      val kept = new KeptColumns(Array(text))
      kept.keepRun(copy, 0, 0, Array.range(0, count).reverse, 0, count)
      assert(pieces.sum == count && pieces.max == most)
      assert((0 until count).forall(kept.textBytes(_) == size))
    }
  }

  private def shuffled(rows: Iterator[InternalRow], buffer: Int): Seq[Seq[Any]] =
    Elements.all(new ShuffledCursor(new RowCursor(rows, columns), buffer, seed = 1))

  test("bytes are copied once, also beside a text: paths and names are short") {
    val files = new StructType().add("path", StringType).add("content", BinaryType)
    assert(new RowSource(null,
        RowColumn.of(files, RowCursorSuite.shapes(files, 1))).mainColumn.contains(1))
    val lists = files.add("list", ArrayType(FloatType))
    assert(new RowSource(null, RowColumn.of(lists, RowCursorSuite.shapes(lists, 100)))
        .mainColumn.contains(2))
  }

  test("shuffled rows keep their values, although Spark reuses the memory of its rows") {
    val inOrder = Elements.all(new RowCursor(rows, columns))
    Seq(() => unsafeRows, () => mutableRows).foreach { reused =>
      assert(Elements.all(new RowCursor(reused(), columns)) == inOrder)
      val seen = shuffled(reused(), 16)
      assert(seen != inOrder && seen.sortBy(_.head.asInstanceOf[Int]) == inOrder)
    }
  }

  test("a shuffled row is named by its number in the partition") {
    val cursor = new ShuffledCursor(new RowCursor(unsafeRows, columns), buffer = 4, seed = 42)
    (0 until 3).foreach(_ => cursor.next())
    assert(cursor.describe == "row 4 of its partition")
  }
}

private object RowCursorSuite {
  /** Every list has that length. */
  def shapes(schema: StructType, length: Int): IndexedSeq[Shape] =
    Vector.fill(schema.size)(Shape(length, hasNull = false, IndexedSeq.empty))
}
