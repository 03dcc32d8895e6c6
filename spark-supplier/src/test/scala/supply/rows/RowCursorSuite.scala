package supply.rows

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SpecificInternalRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._
import org.apache.spark.supply.HeldMemory
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.protocol.Schema
import supply.rows.FrameBlocks.inOrder
import supply.source.ElementCursor

class RowCursorSuite extends AnyFunSuite with FrameBlocks {
  private val schema = new StructType()
    .add("number", IntegerType, nullable = false)
    .add("long", LongType)
    .add("flag", BooleanType, nullable = false)
    .add("text", StringType)
    .add("money", DecimalType(30, 2), nullable = false)
    .add("list", ArrayType(FloatType, containsNull = false), nullable = false)

  private val columns = RowColumn.of(schema, RowCursorSuite.shapes(schema, 0))

  private def row(i: Int): InternalRow = InternalRow(
    i,
    if (i % 3 == 0) null else Long.MaxValue - i,
    i % 2 == 0,
    UTF8String.fromString("text" * (if (i % 50 == 7) 9000 else i * 37 % 300)),
    Decimal(BigDecimal(i).setScale(2), 30, 2),
    new GenericArrayData(Array.tabulate(if (i % 60 == 9) 5000 else i % 3)(_ * i.toFloat)))

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

  test("bytes are copied once, also beside a text: paths and names are short") {
    val files = new StructType().add("path", StringType).add("content", BinaryType)
    assert(new RowSource(null,
        RowColumn.of(files, RowCursorSuite.shapes(files, 1))).mainColumn.contains(1))
    val lists = files.add("list", ArrayType(FloatType))
    assert(new RowSource(null, RowColumn.of(lists, RowCursorSuite.shapes(lists, 100)))
        .mainColumn.contains(2))
  }

  private def shuffled(rows: Iterator[InternalRow], buffer: Int, seed: Long)(
      context: TaskContext) =
    new RunCursor(new ShuffledRows(rows, columns.toArray, buffer, seed, context))

  private def blocks(cursor: ElementCursor): Seq[Seq[Any]] =
    blocks(cursor, Schema(columns.map(_.column)), Some(3), Int.MaxValue, 0, blockBytes = 64 << 10)

  test("rows keep their values, although Spark reuses the memory of its rows") {
    val expected = blocks(inOrder(rows, columns))
    val expectedShuffled = blocks(inOrder(drawn(rows.toSeq, 16, 1).iterator, columns))
    assert(expected != expectedShuffled)
    Seq(() => unsafeRows, () => mutableRows).foreach { reused =>
      assert(blocks(inOrder(reused(), columns)) == expected)
      assert(inTask(context => blocks(shuffled(reused(), 16, 1)(context))) == expectedShuffled)
    }
  }

  test("a shuffled row is named by its number in the partition") {
    assert(inTask { context =>
      val cursor = shuffled(unsafeRows, buffer = 4, seed = 42)(context)
      (0 until 3).foreach(_ => cursor.next())
      cursor.describe
    } == "row 4 of its partition")
  }

  test("rows that a shuffle keeps are memory of their task, which it may not have") {
    inTask { context =>
      val others = new HeldMemory(context)
      assert(!others.hold(Long.MaxValue / 2))
      val cursor = shuffled(unsafeRows, buffer = 4, seed = 42)(context)
      assert(intercept[ConfigException](cursor.next()).getMessage.contains(
          "set a smaller --shuffle-buffer, or a larger spark.executor.memory"))
      cursor.close()
      others.release()
    }
  }
}

private object RowCursorSuite {
  /** Every list has that length. */
  def shapes(schema: StructType, length: Int): IndexedSeq[Shape] =
    Vector.fill(schema.size)(Shape(length, hasNull = false, IndexedSeq.empty))
}
