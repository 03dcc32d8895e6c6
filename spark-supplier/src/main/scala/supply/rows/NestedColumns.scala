package supply.rows

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

import supply.protocol.Column
import supply.source.ElementWriter

/** Which column a type of Spark becomes, with all that is within it (docs/TYPES.md). */
private[rows] object NestedColumns {
  /** The field must be one that can be supplied. */
  def of(field: StructField, shape: Shape, form: ColumnForm): RowColumn =
    of(field.name, field.dataType, field.nullable, shape, form)

  private def of(name: String, dataType: DataType, nullable: Boolean, shape: Shape,
      form: ColumnForm): RowColumn =
    dataType match {
      case ArrayType(element, containsNull) =>
        ofArray(name, element, nullable, containsNull, shape, form)
      case MapType(key, value, valueContainsNull) =>
        val keys = of("key", key, nullable = false, shape.child(0), form)
        val values = of("value", value, valueContainsNull, shape.child(1), form)
        val entries = Column("entries", "+s", children = Vector(keys.column, values.column))
        new RowColumn(Column(name, "+m", nullable, children = Vector(entries)),
          new MapValue(keys, values))
      case StructType(fields) =>
        val made = fields.toIndexedSeq.zipWithIndex.map { case (field, i) =>
          of(field, shape.child(i), form)
        }
        new RowColumn(Column(name, "+s", nullable, children = made.map(_.column)),
          new StructValue(made))
      case vector if SparkTypes.isVector(vector) =>
        if (form.areSparse) ofSparseVector(name, nullable) else ofVector(name, nullable, shape)
      case matrix if SparkTypes.isMatrix(matrix) => ofMatrix(name, nullable, shape)
      case own: UserDefinedType[_] => of(name, own.sqlType, nullable, shape, form)
      case single =>
        val format = form.formatOf(single)
        new RowColumn(Column(name, format, nullable), RowValues.of(single, format))
    }

  private def ofArray(name: String, element: DataType, nullable: Boolean, containsNull: Boolean,
      shape: Shape, form: ColumnForm): RowColumn = form.numberFormatOf(element) match {
    case Some(format) if shape.length > 0 && !shape.hasNull =>
      val column = Column(name, s"+w:${shape.length}", nullable, format)
      new RowColumn(column,
        new ListValue(name, element, format, shape.length, RowColumn.widthOf(column), containsNull))
    case numbers =>
      val made = of("item", element, containsNull, shape.child(0), form)
      val values = new ListValues(made, numbers.map(_ => element))
      if (shape.length > 0)
        new RowColumn(Column(name, s"+w:${shape.length}", nullable, children = Vector(made.column)),
          new FixedListValue(name, shape.length, made, values))
      else
        new RowColumn(Column(name, "+l", nullable, children = Vector(made.column)),
          new VaryingListValue(made, values))
  }

  private def ofVector(name: String, nullable: Boolean, shape: Shape): RowColumn =
    if (shape.length > 0)
      new RowColumn(Column(name, s"+w:${shape.length}", nullable, "g"),
        new VectorValue(name, shape.length))
    else
      new RowColumn(Column(name, "+l", nullable, children = Vector(Column("item", "g"))),
        new VaryingVectorValue)

  private def ofSparseVector(name: String, nullable: Boolean): RowColumn = {
    def list(name: String, format: String) =
      Column(name, "+l", children = Vector(Column("item", format)))
    new RowColumn(Column(name, "+s", nullable,
        children = Vector(Column("size", "i"), list("indices", "i"), list("values", "g"))),
      new SparseVectorValue)
  }

  private def ofMatrix(name: String, nullable: Boolean, shape: Shape): RowColumn = {
    val (rows, columns) = (shape.length, shape.child(0).length)
    if (rows > 0 && columns > 0)
      new RowColumn(Column(name, s"+w:$rows", nullable,
          children = Vector(Column("item", s"+w:$columns",
              childFormat = "g"))), new MatrixValue(name, rows, columns))
    else
      new RowColumn(Column(name, "+l", nullable,
          children = Vector(Column("item", "+l",
              children = Vector(Column("item", "g"))))), new VaryingMatrixValue)
  }
}

/** The values of a list: those of numbers at once, if none is null. `numbers`: their type. */
private final class ListValues(values: RowColumn, numbers: Option[DataType])
    extends Serializable {
  private val number = numbers.orNull
  private val format = values.column.format

  def write(list: ArrayData, entry: Int, to: ElementWriter): Unit = {
    val count = list.numElements()
    if (number != null && !(values.column.nullable && RowBytes.hasNull(list))) {
      if (count > 0)
        RowBytes.write(list, number, format, to.reserveMany(entry, count, values.width))
    } else {
      var i = 0
      while (i < count) {
        values.write(list, i, entry, to)
        i += 1
      }
    }
  }
}

private[rows] final class VaryingListValue(val item: RowColumn, values: ListValues)
    extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    to.putList(column, list.numElements())
    values.write(list, column + 1, to)
  }
}

/** All lists have the same length. */
private[rows] final class FixedListValue(name: String, val length: Int, val item: RowColumn,
    values: ListValues)
    extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    if (list.numElements() != length)
      Shape.refuse(name, s"an array of ${list.numElements()} values", length.toString)
    to.putParent(column)
    values.write(list, column + 1, to)
  }
}

private[rows] final class StructValue(of: IndexedSeq[RowColumn]) extends RowValue {
  val fields = of.toArray

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

private[rows] final class MapValue(val keys: RowColumn, val values: RowColumn) extends RowValue {
  private val ofKeys = new ListValues(keys, None)
  private val ofValues = new ListValues(values, None)

  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val map = row.getMap(i)
    to.putList(column, map.numElements())
    var j = 0
    while (j < map.numElements()) {
      to.putParent(column + 1)
      j += 1
    }
    ofKeys.write(map.keyArray(), column + 2, to)
    ofValues.write(map.valueArray(), column + 2 + keys.entries, to)
  }
}
