package supply.linalg

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.sql.api.java.UDF1
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Project, Range}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.functions.{array, col, udf}
import org.apache.spark.sql.types.{ArrayType, BinaryType, DataType, DecimalType, NumericType}
import org.apache.spark.sql.{Column, DataFrame}

import supply.core.{ConfigException, Hint, SourceException}
import supply.rows.SparkTypes

/**
 * Which columns of a DataFrame are the rows of a matrix. features: one column of arrays of numbers
 * or of Spark ML's vectors, or several columns of numbers. key: of a row, comes back with results.
 * sparse: keep only the entries of vectors that are not 0.
 */
final case class MatrixRows(
    features: Seq[String], key: Option[String] = None, sparse: Boolean = false) {
  import MatrixRows._

  /** The columns of a sparse matrix, by its first row; None: it is dense, or has no rows. */
  private[linalg] def sparseColumns(data: DataFrame): Option[Long] =
    if (sparse && features.nonEmpty && SparkTypes.isVector(typeOf(data, features.head)))
      data.select(col(quoted(features.head))).where(col(quoted(features.head)).isNotNull)
        .take(1).headOption.map(row => SparseVectors.size(row.getAs[AnyRef](0)))
    else None

  /** The columns of the rows, then the keys: the rows are written straight into a block. sparse: [[sparseColumns]]. */
  private[linalg] def of(data: DataFrame, sparse: Option[Long]): DataFrame = {
    key.foreach { name =>
      if (typeOf(data, name).isInstanceOf[ArrayType])
        refuse(data, name, "a number, a text or a date")
    }
    data.select(rowOf(data, sparse.getOrElse(0L)) ++ key.map(name => col(quoted(name))): _*)
  }

  /** The names that ranks know those columns by. An alias would make Spark copy each row. */
  private[linalg] def names: Seq[String] =
    (if (sparse) Seq("indices", "entries") else Seq("row")) ++ key.map(_ => "key")

  /** The format of the numbers of [[of]]'s arrays in the contract; "": the matrix is sparse. */
  private[linalg] def numbers(selected: DataFrame): String = selected.schema.head.dataType match {
    case ArrayType(number, _) => SparkTypes.numberFormatOf(number).get
    case _ => ""
  }

  private def rowOf(data: DataFrame, columns: Long): Seq[Column] = features match {
    case Seq() => throw new ConfigException("a matrix needs at least one column of features")
    case Seq(one) if sparse && SparkTypes.isVector(typeOf(data, one)) =>
      val vector = col(quoted(one))
      Seq(SparseVectors.indices(vector, columns), SparseVectors.entries(vector))
    case _ if sparse =>
      throw new ConfigException(
        s"a sparse matrix comes from one column of vectors, not from ${features.mkString(", ")}")
    case Seq(one) => Seq(denseRow(data, one))
    case many =>
      many.foreach { name =>
        if (!typeOf(data, name).isInstanceOf[NumericType]) refuse(data, name, "a number")
      }
      Seq(array(many.map(name => col(quoted(name)).cast("double")): _*))
  }

  private def denseRow(data: DataFrame, name: String): Column = typeOf(data, name) match {
    case ArrayType(_: DecimalType, _) => col(quoted(name)).cast("array<double>")
    case ArrayType(_: NumericType, _) => col(quoted(name))
    case _: NumericType => array(col(quoted(name)).cast("double"))
    case vector if SparkTypes.isVector(vector) => vectorToArray(col(quoted(name)))
    case _ => refuse(data, name, "an array of numbers, a vector or a number")
  }

  private def refuse(data: DataFrame, name: String, wanted: String): Nothing =
    throw new ConfigException(
      s"column '$name' is ${typeOf(data, name).catalogString}, not $wanted: cast it, or choose another")

  private def typeOf(data: DataFrame, name: String): DataType =
    data.schema.find(_.name == name).orElse(data.schema.find(_.name.equalsIgnoreCase(name)))
      .getOrElse(throw new ConfigException(
          s"there is no column '$name'; there are ${data.schema.fieldNames.mkString(", ")}")).dataType

  private def quoted(name: String): String = s"`${name.replace("`", "``")}`"
}

object MatrixRows {
  /** Of Spark ML, by reflection, because this package runs without it. */
  private def vectorToArray(vector: Column): Column = Class.forName("org.apache.spark.ml.functions")
    .getMethod("vector_to_array", classOf[Column], classOf[String])
    .invoke(null, vector, "float64").asInstanceOf[Column]
}

/**
 * Spark ML's vectors as two columns of bytes, little-endian: the indices of their entries, 32-bit
 * integers, and the entries, doubles. By reflection, because this package runs without Spark ML.
 */
private[linalg] object SparseVectors {
  def indices(vector: Column, size: Long): Column = bytes(vector) { sparse =>
    if (SparseVectors.size(sparse) != size) throw new SourceException(
      s"a vector has the size ${SparseVectors.size(sparse)}, and the first one has $size: give all the same")
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

/** What Spark knows of a matrix before it computes the rows, so that ranks can ask for memory. */
private[linalg] object ExpectedRows {
  private val bytesOfNumber = 8L
  private val smallBytes = 1L << 30

  /** The number of rows; 0: unknown. Known of a DataFrame that is cached and computed. */
  def count(data: DataFrame): Long =
    Hint("how many rows it has")(Some(count(data.queryExecution.optimizedPlan))).getOrElse(0)

  // Estimates of other plans may be too large, and would refuse a matrix that fits.
  private def count(plan: LogicalPlan): Long = plan match {
    case Project(_, child) => count(child)
    case cached: InMemoryRelation if !cached.cacheBuilder.isCachedColumnBuffersLoaded => 0
    case _: InMemoryRelation | _: Range | _: LocalRelation =>
      plan.stats.rowCount.filter(_.isValidLong).fold(0L)(_.toLong)
    case _ => 0
  }

  /**
   * What a rank keeps of each row, by the first one; 0: unknown. A small matrix is not worth the
   * job that looks: the ranks ask for memory while its rows come, too.
   */
  def bytesOfRow(data: DataFrame): Long =
    Hint("how wide its rows are")(Some(widthOf(data))).getOrElse(0)

  private def widthOf(data: DataFrame): Long =
    if (data.queryExecution.optimizedPlan.stats.sizeInBytes < smallBytes) 0
    else data.schema.head.dataType match {
      case _: ArrayType =>
        val first = data.queryExecution.toRdd.filter(!_.isNullAt(0)).map(
          _.getArray(0).numElements()).take(1)
        first.headOption.fold(0L)(_ + data.columns.length - 1L) * bytesOfNumber
      case _ => 0
    }
}
