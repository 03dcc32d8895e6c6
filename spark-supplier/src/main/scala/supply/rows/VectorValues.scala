package supply.rows

import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types.DoubleType

import supply.core.Buffers
import supply.source.ElementWriter

/** A vector of spark.ml or spark.mllib, as Spark keeps it: type, size, indices, values. */
private[rows] object VectorRow {
  private final val Fields = 4
  private final val Sparse: Byte = 0

  def of(row: SpecializedGetters, i: Int): InternalRow = row.getStruct(i, Fields)

  private def isSparse(vector: InternalRow): Boolean = vector.getByte(0) == Sparse

  def size(vector: InternalRow): Int =
    if (isSparse(vector)) vector.getInt(1) else vector.getArray(3).numElements()

  /** Writes size, indices and values of what is not 0, as a struct from the entry `entry` on. */
  def writeSparse(vector: InternalRow, entry: Int, to: ElementWriter): Unit = {
    val values = vector.getArray(3)
    val indices = if (isSparse(vector)) vector.getArray(2) else null
    var count = 0
    var i = 0
    while (i < values.numElements()) {
      if (values.getDouble(i) != 0) count += 1
      i += 1
    }
    def each(bytes: Int, list: Int)(put: (ByteBuffer, Int) => Unit): Unit = {
      to.putList(list, count)
      if (count > 0) {
        val space = to.reserveMany(list + 1, count, bytes)
        var i = 0
        while (i < values.numElements()) {
          if (values.getDouble(i) != 0) put(space, i)
          i += 1
        }
      }
    }
    to.putParent(entry)
    to.putInt(entry + 1, size(vector))
    each(Integer.BYTES, entry + 2) { (space, i) =>
      space.putInt(if (indices == null) i else indices.getInt(i)); ()
    }
    each(java.lang.Double.BYTES, entry + 4) { (space, i) =>
      space.putDouble(values.getDouble(i)); ()
    }
  }

  /** Writes all its numbers, zeros included. */
  def write(vector: InternalRow, to: ByteBuffer): Unit = {
    val values = vector.getArray(3)
    if (!isSparse(vector)) RowBytes.write(values, DoubleType, "g", to)
    else {
      val start = to.position()
      Buffers.clear(to, to.position(), to.remaining())
      val indices = vector.getArray(2)
      var i = 0
      while (i < indices.numElements()) {
        to.putDouble(start + java.lang.Double.BYTES * indices.getInt(i), values.getDouble(i))
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

  /** Writes all its numbers, row after row, zeros included. */
  def write(matrix: InternalRow, to: ByteBuffer): Unit = {
    val start = to.position()
    val (all, width) = (rows(matrix), columns(matrix))
    val values = matrix.getArray(5)
    val isTransposed = matrix.getBoolean(6)
    def put(row: Int, column: Int, value: Double): Unit = {
      to.putDouble(start + java.lang.Double.BYTES * (row * width + column), value)
      ()
    }
    if (matrix.getByte(0) != Sparse) {
      if (isTransposed) RowBytes.write(values, DoubleType, "g", to)
      else for (column <- 0 until width; row <- 0 until all)
        put(row, column, values.getDouble(column * all + row))
    } else {
      Buffers.clear(to, to.position(), to.remaining())
      val (ends, indices) = (matrix.getArray(3), matrix.getArray(4))
      for (i <- 0 until ends.numElements() - 1; j <- ends.getInt(i) until ends.getInt(i + 1)) {
        if (isTransposed) put(i, indices.getInt(j), values.getDouble(j))
        else put(indices.getInt(j), i, values.getDouble(j))
      }
    }
  }
}

/** All vectors have the same size. */
private final class VectorValue(name: String, size: Int) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val vector = VectorRow.of(row, i)
    if (VectorRow.size(vector) != size)
      Shape.refuse(name, s"a vector of ${VectorRow.size(vector)} numbers", size.toString)
    VectorRow.write(vector, to.reserve(column, java.lang.Double.BYTES * size))
  }
}

private final class SparseVectorValue extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit =
    VectorRow.writeSparse(VectorRow.of(row, i), column, to)
}

private final class VaryingVectorValue extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val vector = VectorRow.of(row, i)
    val size = VectorRow.size(vector)
    to.putList(column, size)
    if (size > 0) VectorRow.write(vector, to.reserveMany(column + 1, size, java.lang.Double.BYTES))
  }
}

/** All matrices have the same numbers of rows and columns. */
private final class MatrixValue(name: String, rows: Int, columns: Int) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val matrix = MatrixRow.of(row, i)
    if (MatrixRow.rows(matrix) != rows || MatrixRow.columns(matrix) != columns)
      Shape.refuse(name,
        s"a matrix of ${MatrixRow.rows(matrix)} x ${MatrixRow.columns(matrix)} numbers",
        s"$rows x $columns")
    to.putParent(column)
    MatrixRow.write(matrix, to.reserveMany(column + 1, rows, java.lang.Double.BYTES * columns))
  }
}

private final class VaryingMatrixValue extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val matrix = MatrixRow.of(row, i)
    val (rows, columns) = (MatrixRow.rows(matrix), MatrixRow.columns(matrix))
    to.putList(column, rows)
    for (_ <- 0 until rows) to.putList(column + 1, columns)
    if (rows * columns > 0)
      MatrixRow.write(matrix, to.reserveMany(column + 2, rows * columns, java.lang.Double.BYTES))
  }
}
