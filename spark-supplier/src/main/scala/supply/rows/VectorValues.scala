package supply.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types.DoubleType

import supply.core.Buffers
import supply.protocol.Column

/** A vector of spark.ml or spark.mllib, as Spark keeps it: type, size, indices, values. */
private[rows] object VectorRow {
  private final val Fields = 4
  private final val Sparse: Byte = 0

  /** The numbers of a vector. */
  val Doubles = new RowColumn(Column("item", "g"), RowValues.of(DoubleType, "g"))

  def of(row: SpecializedGetters, i: Int): InternalRow = row.getStruct(i, Fields)

  private def isSparse(vector: InternalRow): Boolean = vector.getByte(0) == Sparse

  def size(vector: InternalRow): Int =
    if (isSparse(vector)) vector.getInt(1) else vector.getArray(3).numElements()

  /** Appends size, indices and values of what is not 0, to a struct. */
  def appendSparse(vector: InternalRow, to: RunColumn): Unit = {
    val values = vector.getArray(3)
    val indices = if (isSparse(vector)) vector.getArray(2) else null
    val found = (0 until values.numElements()).filter(values.getDouble(_) != 0)
    to.putStruct()
    to.children(0).putInt(size(vector))
    to.children(1).putList(found.size)
    found.foreach(i =>
      to.children(1).children(0).putInt(if (indices == null) i else indices.getInt(i)))
    to.children(2).putList(found.size)
    found.foreach(i =>
      to.children(2).children(0).putLong(java.lang.Double.doubleToRawLongBits(values.getDouble(i))))
  }

  /** Appends all its numbers, zeros included. */
  def append(vector: InternalRow, size: Int, to: RunColumn): Unit = {
    val values = vector.getArray(3)
    if (!isSparse(vector)) ListValue.append(values, Doubles, to)
    else {
      val space = to.put(size)
      val start = space.position()
      Buffers.clear(space, start, space.remaining())
      val indices = vector.getArray(2)
      var i = 0
      while (i < indices.numElements()) {
        space.putDouble(start + java.lang.Double.BYTES * indices.getInt(i), values.getDouble(i))
        i += 1
      }
    }
  }
}

/** A matrix of spark.ml or spark.mllib: type, rows, columns, colPtrs, rowIndices, values, isTransposed. */
private[rows] object MatrixRow {
  private final val Fields = 7
  private final val Sparse: Byte = 0

  def of(row: SpecializedGetters, i: Int): InternalRow = row.getStruct(i, Fields)

  def rows(matrix: InternalRow): Int = matrix.getInt(1)

  def columns(matrix: InternalRow): Int = matrix.getInt(2)

  /** Appends all its numbers, row after row, zeros included. */
  def append(matrix: InternalRow, to: RunColumn): Unit = {
    val (all, width) = (rows(matrix), columns(matrix))
    val values = matrix.getArray(5)
    val isTransposed = matrix.getBoolean(6)
    val isSparse = matrix.getByte(0) == Sparse
    if (!isSparse && isTransposed) ListValue.append(values, VectorRow.Doubles, to)
    else {
      val space = to.put(all * width)
      val start = space.position()
      def put(row: Int, column: Int, value: Double): Unit = {
        space.putDouble(start + java.lang.Double.BYTES * (row * width + column), value)
        ()
      }
      if (!isSparse) for (column <- 0 until width; row <- 0 until all)
        put(row, column, values.getDouble(column * all + row))
      else {
        Buffers.clear(space, start, space.remaining())
        val (ends, indices) = (matrix.getArray(3), matrix.getArray(4))
        for (i <- 0 until ends.numElements() - 1; j <- ends.getInt(i) until ends.getInt(i + 1)) {
          if (isTransposed) put(i, indices.getInt(j), values.getDouble(j))
          else put(indices.getInt(j), i, values.getDouble(j))
        }
      }
    }
  }
}

/** All vectors have this size; 0: they differ. */
private final class VectorValue(name: String, size: Int) extends RowValue {
  override def isInVectors: Boolean = false

  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit = {
    val vector = VectorRow.of(row, i)
    val found = VectorRow.size(vector)
    if (size > 0 && found != size) Shape.refuse(name, s"a vector of $found numbers", size.toString)
    to.putList(found)
    VectorRow.append(vector, found, to.children(0))
  }
}

private final class SparseVectorValue extends RowValue {
  override def isInVectors: Boolean = false

  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit =
    VectorRow.appendSparse(VectorRow.of(row, i), to)
}

/** All matrices have these numbers of rows and columns; 0: they differ. */
private final class MatrixValue(name: String, rows: Int, columns: Int) extends RowValue {
  override def isInVectors: Boolean = false

  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit = {
    val matrix = MatrixRow.of(row, i)
    val (height, width) = (MatrixRow.rows(matrix), MatrixRow.columns(matrix))
    if (rows > 0 && (height != rows || width != columns))
      Shape.refuse(name, s"a matrix of $height x $width numbers", s"$rows x $columns")
    to.putList(height)
    for (_ <- 0 until height) to.children(0).putList(width)
    MatrixRow.append(matrix, to.children(0).children(0))
  }
}
