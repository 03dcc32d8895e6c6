package supply.rows

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

import supply.core.SourceException
import supply.protocol.Column
import supply.source.ElementWriter

/** A column, and what writes its values. */
private[rows] final case class Made(column: Column, value: RowValue)

/** Which column a type of Spark becomes, with all that is within it (docs/DATAFRAMES.md, "Columns"). */
private[rows] object NestedColumns {
  def of(name: String, dataType: DataType, nullable: Boolean, shape: Shape): Made = dataType match {
    case ArrayType(element, containsNull) => ofArray(name, element, nullable, containsNull, shape)
    case MapType(key, value, valueContainsNull) =>
      val keys = of("key", key, nullable = false, shape.child(0))
      val values = of("value", value, valueContainsNull, shape.child(1))
      val entries = Column("entries", "+s", children = Vector(keys.column, values.column))
      Made(Column(name, "+m", nullable, children = Vector(entries)), new MapValue(keys, values))
    case StructType(fields) =>
      val made = fields.toIndexedSeq.zipWithIndex.map { case (field, i) =>
        of(field.name, field.dataType, field.nullable, shape.child(i))
      }
      Made(Column(name, "+s", nullable, children = made.map(_.column)), new StructValue(made))
    case own: UserDefinedType[_] if own.typeName == "vector" => ofVector(name, nullable, shape)
    case own: UserDefinedType[_] if own.typeName == "matrix" => ofMatrix(name, nullable, shape)
    case own: UserDefinedType[_] => of(name, own.sqlType, nullable, shape)
    case single =>
      val format = SparkTypes.formatOf(single).get
      Made(Column(name, format, nullable), RowValues.of(single, format))
  }

  private def ofArray(name: String, element: DataType, nullable: Boolean, containsNull: Boolean,
      shape: Shape): Made = SparkTypes.numberFormatOf(element) match {
    case Some(format) if shape.length > 0 && !shape.hasNull =>
      val column = Column(name, s"+w:${shape.length}", nullable, format)
      Made(column,
        new ListValue(name, format, shape.length, RowColumn.widthOf(column), containsNull))
    case numbers =>
      val made = of("item", element, containsNull, shape.child(0))
      if (shape.length > 0)
        Made(Column(name, s"+w:${shape.length}", nullable, children = Vector(made.column)),
          new FixedListValue(name, shape.length, made, numbers))
      else
        Made(Column(name, "+l", nullable, children = Vector(made.column)),
          new VaryingListValue(made, numbers))
  }

  private def ofVector(name: String, nullable: Boolean, shape: Shape): Made =
    if (shape.length > 0)
      Made(Column(name, s"+w:${shape.length}", nullable, "g"), new VectorValue(name, shape.length))
    else
      Made(Column(name, "+l", nullable, children = Vector(Column("item", "g"))),
        new VaryingVectorValue)

  private def ofMatrix(name: String, nullable: Boolean, shape: Shape): Made = {
    val (rows, columns) = (shape.length, shape.child(0).length)
    if (rows > 0 && columns > 0)
      Made(Column(name, s"+w:$rows", nullable,
          children = Vector(Column("item", s"+w:$columns",
              childFormat = "g"))), new MatrixValue(name, rows, columns))
    else
      Made(Column(name, "+l", nullable,
          children = Vector(Column("item", "+l",
              children = Vector(Column("item", "g"))))), new VaryingMatrixValue)
  }
}

/** Values within others: each is written to an entry of its own, and may be null. */
private final class Within(made: Made) extends Serializable {
  private val nullable = made.column.nullable
  private val value = made.value

  /** Entries of the schema that it takes. */
  val entries: Int = made.column.entries.size

  def write(values: SpecializedGetters, i: Int, entry: Int, to: ElementWriter): Unit =
    if (nullable && values.isNullAt(i)) to.putNull(entry) else value.write(values, i, entry, to)
}

/** The values of a list: those of numbers at once, if none is null. `numbers`: their format. */
private final class ListValues(made: Made, numbers: Option[String]) extends Serializable {
  private val values = new Within(made)
  private val format = numbers.orNull
  private val width = RowColumn.widthOf(made.column)

  def write(list: ArrayData, entry: Int, to: ElementWriter): Unit = {
    val count = list.numElements()
    if (format != null && !(made.column.nullable && RowBytes.hasNull(list))) {
      if (count > 0) RowBytes.write(list, format, to.reserveMany(entry, count, width))
    } else {
      var i = 0
      while (i < count) {
        values.write(list, i, entry, to)
        i += 1
      }
    }
  }
}

private final class VaryingListValue(made: Made, numbers: Option[String]) extends RowValue {
  private val values = new ListValues(made, numbers)

  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    to.putList(column, list.numElements())
    values.write(list, column + 1, to)
  }
}

/** All lists have the same length. */
private final class FixedListValue(name: String, length: Int, made: Made, numbers: Option[String])
    extends RowValue {
  private val values = new ListValues(made, numbers)

  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    if (list.numElements() != length)
      throw new SourceException(
        s"column '$name' has an array of ${list.numElements()} values, and one of $length among the first rows: set " +
          "the option lists to varying")
    to.putParent(column)
    values.write(list, column + 1, to)
  }
}

private final class StructValue(made: IndexedSeq[Made]) extends RowValue {
  private val fields = made.map(new Within(_)).toArray

  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val struct = row.getStruct(i, fields.length)
    to.putParent(column)
    var entry = column + 1
    var j = 0
    while (j < fields.length) {
      fields(j).write(struct, j, entry, to)
      entry += fields(j).entries
      j += 1
    }
  }
}

private final class MapValue(keys: Made, values: Made) extends RowValue {
  private val ofKeys = new ListValues(keys, None)
  private val ofValues = new ListValues(values, None)
  private val keyEntries = keys.column.entries.size

  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val map = row.getMap(i)
    to.putList(column, map.numElements())
    var j = 0
    while (j < map.numElements()) {
      to.putParent(column + 1)
      j += 1
    }
    ofKeys.write(map.keyArray(), column + 2, to)
    ofValues.write(map.valueArray(), column + 2 + keyEntries, to)
  }
}
