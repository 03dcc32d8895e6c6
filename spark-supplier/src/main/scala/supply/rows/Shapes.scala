package supply.rows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import supply.core.SourceException

/**
 * What a sample of rows says of a column, or of the values within one. Lists whose lengths are all
 * the same become an array of more dimensions.
 *
 * @param length of all lists, or of all vectors; 0: they differ, are empty, or there was none
 * @param hasNull whether a list had a null
 * @param children of the values of a list; of the rows of a matrix; of keys and values; of fields
 */
private[supply] final case class Shape(
    length: Int, hasNull: Boolean, children: IndexedSeq[Shape]) {
  def child(number: Int): Shape = children.lift(number).getOrElse(Shape.Unknown)
}

private[supply] object Shape {
  val Unknown: Shape = Shape(0, hasNull = false, IndexedSeq.empty)

  /** Throws a SourceException: the column has `value`, and the sample said `first`. */
  def refuse(column: String, value: String, first: String): Nothing =
    throw new SourceException(
      s"column '$column' has $value, and one of $first among the first rows: let its lists vary (the option " +
        s"lists, in Python ragged={'$column': 'jagged'})")
}

/**
 * The shapes of a DataFrame's columns. A stream keeps those of its first batch with rows. For one
 * thread.
 */
private[supply] final class Shapes(val forms: ColumnForms = ColumnForms.Own) {
  private var found: Option[IndexedSeq[Shape]] = None

  /** None: there is no row. If there are lists, computes rows of the first partition that has any. */
  def of(schema: StructType, rows: => RDD[InternalRow]): Option[IndexedSeq[Shape]] = {
    // Lists that vary get no common length, whatever a sample would say.
    val types = schema.fields.toIndexedSeq.map(field =>
      if (forms.varying(field.name)) NullType else field.dataType)
    if (!types.exists(ShapeSample.hasLists)) Some(types.map(_ => Shape.Unknown))
    else {
      if (found.isEmpty) found = rows.mapPartitions { partition =>
        if (partition.isEmpty) Iterator.empty
        else {
          val samples = types.map(ShapeSample.of)
          partition.take(ShapeSample.Rows).foreach { row =>
            for (i <- samples.indices if !row.isNullAt(i)) samples(i).add(row, i)
          }
          Iterator.single(samples.map(_.shape))
        }
      }.take(1).headOption
      found
    }
  }
}

/** What the values of one column were in the rows of a sample. */
private abstract class ShapeSample {
  /** Adds value `i` of a row or an array, which is not null. */
  def add(values: SpecializedGetters, i: Int): Unit

  def shape: Shape
}

private object ShapeSample {
  /** Enough that lists which differ in length do so in them; few, because they are computed twice. */
  final val Rows = 100

  def hasLists(dataType: DataType): Boolean = dataType match {
    case _: ArrayType | _: MapType => true
    case StructType(fields) => fields.exists(field => hasLists(field.dataType))
    case own: UserDefinedType[_] => hasLists(own.sqlType)
    case _ => false
  }

  def of(dataType: DataType): ShapeSample = dataType match {
    case ArrayType(element, _) => new ListSample(of(element))
    case MapType(key, value, _) => new MapSample(of(key), of(value))
    case StructType(fields) => new StructSample(fields.map(field => of(field.dataType)))
    case vector if SparkTypes.isVector(vector) => new VectorSample
    case matrix if SparkTypes.isMatrix(matrix) => new MatrixSample
    case own: UserDefinedType[_] => of(own.sqlType)
    case _ => Single
  }

  private object Single extends ShapeSample {
    override def add(values: SpecializedGetters, i: Int): Unit = ()
    override def shape: Shape = Shape.Unknown
  }

  /** One length, as long as all that are added are the same. */
  private final class Length {
    private var common = -1

    def add(length: Int): Unit =
      if (common == -1) common = length else if (common != length) common = 0

    def get: Int = math.max(common, 0)
  }

  private final class ListSample(element: ShapeSample) extends ShapeSample {
    private val length = new Length
    private var hasNull = false

    override def add(values: SpecializedGetters, i: Int): Unit = {
      val list = values.getArray(i)
      length.add(list.numElements())
      for (j <- 0 until list.numElements())
        if (list.isNullAt(j)) hasNull = true else element.add(list, j)
    }

    override def shape: Shape = Shape(length.get, hasNull, IndexedSeq(element.shape))
  }

  private final class MapSample(key: ShapeSample, value: ShapeSample) extends ShapeSample {
    override def add(values: SpecializedGetters, i: Int): Unit = {
      val map = values.getMap(i)
      for (j <- 0 until map.numElements()) {
        key.add(map.keyArray(), j)
        if (!map.valueArray().isNullAt(j)) value.add(map.valueArray(), j)
      }
    }

    override def shape: Shape = Shape(0, hasNull = false, IndexedSeq(key.shape, value.shape))
  }

  private final class StructSample(fields: Array[ShapeSample]) extends ShapeSample {
    override def add(values: SpecializedGetters, i: Int): Unit = {
      val struct = values.getStruct(i, fields.length)
      for (j <- fields.indices if !struct.isNullAt(j)) fields(j).add(struct, j)
    }

    override def shape: Shape = Shape(0, hasNull = false, fields.map(_.shape).toIndexedSeq)
  }

  private final class VectorSample extends ShapeSample {
    private val length = new Length

    override def add(values: SpecializedGetters, i: Int): Unit =
      length.add(VectorRow.size(VectorRow.of(values, i)))

    override def shape: Shape = Shape(length.get, hasNull = false, IndexedSeq.empty)
  }

  private final class MatrixSample extends ShapeSample {
    private val rows, columns = new Length

    override def add(values: SpecializedGetters, i: Int): Unit = {
      val matrix = MatrixRow.of(values, i)
      rows.add(MatrixRow.rows(matrix))
      columns.add(MatrixRow.columns(matrix))
    }

    override def shape: Shape = Shape(rows.get, hasNull = false,
      IndexedSeq(Shape(columns.get, hasNull = false, IndexedSeq.empty)))
  }
}
