package supply.rows

import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector}

/**
 * The addresses of a vector over Arrow's memory: Spark's, or one of Apache DataFusion Comet, which
 * has Arrow under another name. Methods are found by name for both. Reused for each batch.
 */
private[rows] final class ArrowMemory {
  var hasNull = false

  /** The addresses of the values, or those of the arrays' numbers. */
  var values = 0L
  var validity = 0L

  /** Where each text or array begins, and the last one ends; 0: they have one width. */
  var offsets = 0L

  /** Whether it has values of that format of the contract. */
  def open(column: ColumnVector, format: String): Boolean = ArrowMemory.isOver(column) && {
    val vector = ArrowMemory.vectorOf(column)
    val isOfFormat = vector.getClass.getSimpleName == ArrowMemory.nameOf(format)
    if (isOfFormat) {
      begin(column, vector)
      values = address(vector, "getDataBufferAddress")
    }
    isOfFormat
  }

  /** Whether it has arrays of numbers of that format, none of which is null. */
  def openLists(column: ColumnVector, format: String): Boolean = ArrowMemory.isOver(column) && {
    val lists = ArrowMemory.vectorOf(column)
    lists.getClass.getSimpleName == "ListVector" && {
      begin(column, lists)
      val numbers = ArrowMemory.call(lists, "getDataVector")
      values = address(numbers, "getDataBufferAddress")
      numbers.getClass.getSimpleName == ArrowMemory.nameOf(format) &&
      ArrowMemory.call(numbers, "getNullCount") == Integer.valueOf(0)
    }
  }

  private def begin(column: ColumnVector, vector: AnyRef): Unit = {
    hasNull = column.hasNull
    validity = address(vector, "getValidityBufferAddress")
    offsets =
      if (ArrowMemory.HaveOffsets.contains(vector.getClass.getSimpleName))
        address(vector, "getOffsetBufferAddress")
      else 0
  }

  private def address(vector: AnyRef, method: String): Long =
    ArrowMemory.call(vector, method).asInstanceOf[java.lang.Long].longValue
}

private[rows] object ArrowMemory {
  /** Comet's other vectors have dictionaries or selected rows. */
  private val Comet = "org.apache.comet.vector.CometPlainVector"

  private def isOver(column: ColumnVector): Boolean = {
    val name = column.getClass.getName
    name == classOf[ArrowColumnVector].getName || name == Comet
  }

  private def vectorOf(column: ColumnVector): AnyRef = call(column, "getValueVector")

  private val HaveOffsets = Set("VarCharVector", "VarBinaryVector", "ListVector")

  /** Finding a method takes some hundred nanoseconds, once for each column of a batch. */
  private def call(of: AnyRef, method: String): AnyRef = of.getClass.getMethod(method).invoke(of)

  /** Arrow's class for a format: it has the values as a block has them. */
  private def nameOf(format: String): String = format match {
    case "b" => "BitVector"
    case "c" => "TinyIntVector"
    case "s" => "SmallIntVector"
    case "i" => "IntVector"
    case "l" => "BigIntVector"
    case "f" => "Float4Vector"
    case "g" => "Float8Vector"
    case "tdD" => "DateDayVector"
    case "tsu:" => "TimeStampMicroVector"
    case "u" => "VarCharVector"
    case "z" => "VarBinaryVector"
    case other if other.startsWith("tsu:") => "TimeStampMicroTZVector"
    case other if other.startsWith("d:") => "DecimalVector"
    case _ => ""
  }
}
