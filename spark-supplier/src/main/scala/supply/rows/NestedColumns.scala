package supply.rows

import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, UnsafeArrayData}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

import supply.core.SourceException
import supply.protocol.Column

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
          new StructValue(made.toArray))
      case vector if SparkTypes.isVector(vector) =>
        if (form.areSparse) ofSparseVector(name, nullable)
        else new RowColumn(lists(name, nullable, Seq(shape.length)),
          new VectorValue(name, shape.length))
      case matrix if SparkTypes.isMatrix(matrix) =>
        val (rows, columns) = (shape.length, shape.child(0).length)
        val lengths = if (columns > 0) Seq(rows, columns) else Seq(0, 0)
        new RowColumn(lists(name, nullable, lengths),
          new MatrixValue(name, lengths.head, lengths.last))
      case own: UserDefinedType[_] => of(name, own.sqlType, nullable, shape, form)
      case single =>
        val format = form.formatOf(single)
        new RowColumn(Column(name, format, nullable), RowValues.of(single, format))
    }

  private def ofArray(name: String, element: DataType, nullable: Boolean, containsNull: Boolean,
      shape: Shape, form: ColumnForm): RowColumn = form.numberFormatOf(element) match {
    case Some(format) if shape.length > 0 && !shape.hasNull =>
      val number = of("item", element, nullable = false, Shape.Unknown, form)
      new RowColumn(Column(name, s"+w:${shape.length}", nullable, format),
        new ListValue(name, shape.length, number, ofNumbers = true))
    case _ =>
      val item = of("item", element, containsNull, shape.child(0), form)
      val format = if (shape.length > 0) s"+w:${shape.length}" else "+l"
      new RowColumn(Column(name, format, nullable, children = Vector(item.column)),
        new ListValue(name, shape.length, item, ofNumbers = false))
  }

  /** Lists of doubles, within each other: each of that length; 0: of any length. */
  private def lists(name: String, nullable: Boolean, lengths: Seq[Int]): Column = {
    val length = lengths.head
    def item =
      if (lengths.size == 1) Column("item", "g")
      else lists("item", nullable = false, lengths.tail)
    if (length == 0) Column(name, "+l", nullable, children = Vector(item))
    else if (lengths.size == 1) Column(name, s"+w:$length", nullable, "g")
    else Column(name, s"+w:$length", nullable, children = Vector(item))
  }

  private def ofSparseVector(name: String, nullable: Boolean): RowColumn = {
    def list(name: String, format: String) =
      Column(name, "+l", children = Vector(Column("item", format)))
    new RowColumn(Column(name, "+s", nullable,
        children = Vector(Column("size", "i"), list("indices", "i"), list("values", "g"))),
      new SparseVectorValue)
  }
}

/** Lists of `length` values each; 0: of any length. `ofNumbers`: none of them may be null. */
private final class ListValue(name: String, length: Int, item: RowColumn, ofNumbers: Boolean)
    extends RowValue {
  override def isInVectors: Boolean = item.value.isInVectors

  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit = {
    val list = row.getArray(i)
    if (length > 0 && list.numElements() != length)
      Shape.refuse(name,
        s"an array of ${list.numElements()} ${if (ofNumbers) "numbers" else "values"}",
        length.toString)
    if (ofNumbers && RowBytes.hasNull(list))
      throw new SourceException(
        s"column '$name' has an array with a null in it, and none among the first rows: let its lists vary " +
          s"(the option lists, in Python ragged={'$name': 'jagged'}), fill it, or drop the row")
    to.putList(list.numElements())
    ListValue.append(list, item, to.children(0))
  }
}

private object ListValue {
  /** Appends the values of a list: at once, if they have one width and none is null. */
  def append(list: ArrayData, item: RowColumn, to: RunColumn): Unit = list match {
    case unsafe: UnsafeArrayData
        if item.widthInRow > 0 && !(item.column.nullable && RowBytes.hasNull(unsafe)) =>
      to.copyMany(unsafe.getBaseObject, RowBytes.startOf(unsafe), unsafe.numElements())
    case _ =>
      var i = 0
      while (i < list.numElements()) {
        item.append(list, i, to)
        i += 1
      }
  }
}

private final class StructValue(fields: Array[RowColumn]) extends RowValue {
  override def isInVectors: Boolean = fields.forall(_.value.isInVectors)

  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit = {
    val struct = row.getStruct(i, fields.length)
    to.putStruct()
    var j = 0
    while (j < fields.length) {
      fields(j).append(struct, j, to.children(j))
      j += 1
    }
  }
}

private final class MapValue(keys: RowColumn, values: RowColumn) extends RowValue {
  override def isInVectors: Boolean = keys.value.isInVectors && values.value.isInVectors

  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit = {
    val map = row.getMap(i)
    to.putList(map.numElements())
    ListValue.append(map.keyArray(), keys, to.children(0))
    ListValue.append(map.valueArray(), values, to.children(1))
  }
}
