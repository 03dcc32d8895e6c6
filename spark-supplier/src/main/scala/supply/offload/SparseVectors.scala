package supply.offload

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.sql.Column
import org.apache.spark.sql.api.java.UDF1
import org.apache.spark.sql.functions.udf
import org.apache.spark.sql.types.BinaryType

/**
 * Spark ML's vectors as two columns of bytes, little-endian: the indices of their entries, 32-bit
 * integers, and the entries, doubles. By reflection, because this package runs without Spark ML.
 */
private[offload] object SparseVectors {
  def indices(vector: Column): Column = bytes(vector) { sparse =>
    val numbers = get[Array[Int]](sparse, "indices")
    val buffer = littleEndian(numbers.length * Integer.BYTES)
    buffer.asIntBuffer().put(numbers)
    buffer.array
  }

  def entries(vector: Column): Column = bytes(vector) { sparse =>
    val numbers = get[Array[Double]](sparse, "values")
    val buffer = littleEndian(numbers.length * java.lang.Double.BYTES)
    buffer.asDoubleBuffer().put(numbers)
    buffer.array
  }

  /** The length of a vector. */
  def size(vector: AnyRef): Long = get[Int](vector, "size").toLong

  private def bytes(vector: Column)(of: AnyRef => Array[Byte]): Column = {
    val function: UDF1[AnyRef, Array[Byte]] =
      (value: AnyRef) => if (value == null) null else of(get[AnyRef](value, "toSparse"))
    udf(function, BinaryType)(vector)
  }

  private def get[A](vector: AnyRef, name: String): A =
    vector.getClass.getMethod(name).invoke(vector).asInstanceOf[A]

  private def littleEndian(bytes: Int): ByteBuffer =
    ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN)
}
