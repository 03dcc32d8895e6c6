package supply.rows

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import supply.core.ConfigException
import supply.protocol.{Column, Format}

/** Puts the values of one column into a run. A class, so that a call for each value is a virtual one. */
private[rows] abstract class RowValue extends Serializable {
  /** Appends value `i` of the row, or of an array, which must not be null. */
  def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit

  /** Whether a vector of Spark has these values as a [[RunColumn]] has them, so that they can be copied. */
  def isInVectors: Boolean = true
}

/** One column of a DataFrame as a column of blocks, or one within it. */
private[rows] final class RowColumn(val column: Column, val value: RowValue) extends Serializable {
  /** Entries of the schema that it takes. */
  val entries: Int = column.entries.size

  /** Appends value `i` of the row, or of an array, or null. */
  def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit =
    if (column.nullable && row.isNullAt(i)) to.putNull() else value.append(row, i, to)

  /** Bytes of a value in an UnsafeRow, or in an array there; 0: it is elsewhere, or not as in a block. */
  val widthInRow: Int = column.format match {
    case "b" | "c" | "s" | "i" | "l" | "f" | "g" | "tdD" | "tiM" | "tDu" | "ttn" =>
      RowColumn.widthOf(column)
    case instant if instant.startsWith("tsu:") => RowColumn.widthOf(column)
    case _ => 0
  }
}

private[rows] object RowColumn {
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
        case ArrayType(number, _) if SparkTypes.numberFormatOf(number).isDefined =>
          new RowColumn(Column(name, "z", field.nullable),
            new ListBytes(field.name,
              widthOf(Column(name, SparkTypes.numberFormatOf(number).get))))
        case _ =>
          val made = NestedColumns.of(field, Shape.Unknown, ColumnForm.Own)
          new RowColumn(made.column.copy(name = name), made.value)
      }
    }
  }

  /** Bytes of a value; 0: they differ, or stand in children. Booleans have a byte in vectors. */
  private[rows] def widthOf(column: Column): Int = Format.of(column) match {
    case Format.Bits => 1
    case Format.Fixed(bytes) => bytes
    case _ => 0
  }
}
