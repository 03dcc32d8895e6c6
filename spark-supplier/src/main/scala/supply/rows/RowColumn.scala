package supply.rows

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import supply.core.ConfigException
import supply.protocol.{Column, Format}
import supply.source.{ElementBytes, ElementWriter}

/** Writes the values of one column. A class, so that a call for each value is a virtual one. */
private[rows] abstract class RowValue extends Serializable {
  /** Writes value `i` of the row, or of an array, which must not be null, to the entry `column`. */
  def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit
}

/** One column of a DataFrame as a column of blocks, or one within it. */
private[rows] final class RowColumn(val column: Column, val value: RowValue) extends Serializable {
  /** Bytes of a value; 0: they differ, or stand in children. */
  val width: Int = RowColumn.widthOf(column)

  /** Whether a writer reserves space for its values, and they have one width. */
  def isReserved: Boolean =
    Format.of(column).isInstanceOf[Format.Fixed] && !ElementBytes.isInts(column)

  /** Entries of the schema that it takes. */
  val entries: Int = column.entries.size

  /** Writes value `i` of the row, or of an array, or null, to the entry `entry`. */
  def write(row: SpecializedGetters, i: Int, entry: Int, to: ElementWriter): Unit =
    if (column.nullable && row.isNullAt(i)) to.putNull(entry) else value.write(row, i, entry, to)
}

private[rows] object RowColumn {
  /** Writes one row. A loop of its own, because it runs for each row. */
  def write(columns: Array[RowColumn], row: SpecializedGetters, to: ElementWriter): Unit = {
    var i = 0
    var entry = 0
    while (i < columns.length) {
      columns(i).write(row, i, entry, to)
      entry += columns(i).entries
      i += 1
    }
  }

  /** Throws a ConfigException that names all columns that cannot be supplied. */
  def of(schema: StructType, shapes: => IndexedSeq[Shape],
      forms: ColumnForms = ColumnForms.Own): IndexedSeq[RowColumn] = {
    if (schema.isEmpty) throw new ConfigException("there is no column to supply")
    RefusedColumns.require(schema)
    forms.check(schema)
    schema.fields.toIndexedSeq.zip(shapes).map { case (field, shape) =>
      NestedColumns.of(field, shape, forms.of(field))
    }
  }

  /**
   * The same with names of their own, and each array as the bytes of its numbers, so that nobody
   * needs to know its length.
   */
  def withBytesOfLists(schema: StructType, names: Seq[String]): IndexedSeq[RowColumn] = {
    RefusedColumns.require(schema)
    schema.fields.toIndexedSeq.zip(names).map { case (field, name) =>
      field.dataType match {
        case ArrayType(number, containsNull) if SparkTypes.numberFormatOf(number).isDefined =>
          val format = SparkTypes.numberFormatOf(number).get
          new RowColumn(Column(name, "z", field.nullable),
            new ListBytes(field.name, number, format, widthOf(Column(name, format)), containsNull))
        case _ =>
          val made = NestedColumns.of(field, Shape.Unknown, ColumnForm.Own)
          new RowColumn(made.column.copy(name = name), made.value)
      }
    }
  }

  /** [[RowColumn.width]] of such a column. */
  private[rows] def widthOf(column: Column): Int = Format.of(column) match {
    case Format.Bits => 1
    case Format.Fixed(bytes) => bytes
    case _ => 0
  }
}
