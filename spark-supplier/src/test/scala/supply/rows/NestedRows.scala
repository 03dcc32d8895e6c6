package supply.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

import supply.source.ElementCursor

/** The rows of task-nested.mapped (proto/golden/README.md). */
private[supply] object NestedRows {
  private val schema = StructType.fromDDL(
    "tokens array<int>, point struct<x: int, name: string>, counts map<string, int>")
  private val columns = RowColumn.of(schema, schema.fields.toIndexedSeq.map(_ => Shape.Unknown))
  private val rows = Seq(
    InternalRow(list(1, null, 3), InternalRow(7, text("a")), map("k" -> 1)),
    InternalRow(list(), null, map()),
    InternalRow(null, InternalRow(9, null), map("l" -> null, "m" -> 2)))

  val source = new RowSource(null, columns)

  def cursor: ElementCursor =
    new RunCursor(new RowsInOrder(rows.iterator, columns.toArray))

  private def text(of: String) = UTF8String.fromString(of)

  private def list(values: Any*) = new GenericArrayData(values.toArray[Any])

  private def map(entries: (String, Any)*) =
    new ArrayBasedMapData(list(entries.map(entry => text(entry._1)): _*),
      list(entries.map(_._2): _*))
}
