package supply.rows

import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector}

/**
 * The addresses of a vector of Arrow: Spark's, or one of Apache DataFusion Comet, which has Arrow
 * under another name. Methods are found by name for both. Reused for each batch.
 */
private[rows] final class ArrowMemory {
  var hasNull = false
  var validity = 0L

  /** The address of the values. */
  var values = 0L

  /** Where each text or list begins, and the last one ends; 0: they have one width. */
  var offsets = 0L

  /** Whether it has values of that format of the contract. */
  def open(vector: AnyRef, format: String): Boolean = {
    val isOfFormat = ArrowMemory.kind(vector) == ArrowMemory.nameOf(format) &&
      !ArrowMemory.isEncoded(vector)
    if (isOfFormat) {
      begin(vector)
      offsets =
        if (format == "u" || format == "z") address(vector, "getOffsetBufferAddress") else 0
      values = address(vector, "getDataBufferAddress")
    }
    isOfFormat
  }

  def openLists(vector: AnyRef): Boolean = ArrowMemory.Lists(ArrowMemory.kind(vector)) && {
    begin(vector)
    offsets = address(vector, "getOffsetBufferAddress")
    true
  }

  def openStructs(vector: AnyRef): Boolean = ArrowMemory.kind(vector) == ArrowMemory.Struct && {
    begin(vector)
    true
  }

  private def begin(vector: AnyRef): Unit = {
    hasNull = ArrowMemory.call(vector, "getNullCount") != Integer.valueOf(0)
    validity = address(vector, "getValidityBufferAddress")
  }

  private def address(vector: AnyRef, method: String): Long =
    ArrowMemory.call(vector, method).asInstanceOf[java.lang.Long].longValue
}

private[rows] object ArrowMemory {
  /** Comet's other vectors have dictionaries or selected rows. */
  private val Columns = classOf[ArrowColumnVector].getName +:
    Seq("Plain", "List", "Map", "Struct").map(kind => s"org.apache.comet.vector.Comet${kind}Vector")

  private val Lists = Set("ListVector", "MapVector")
  private val Struct = "StructVector"

  /** null: it is not over such memory. */
  def opened(column: ColumnVector): AnyRef =
    if (Columns.contains(column.getClass.getName)) call(column, "getValueVector") else null

  /** As VectorMemory.child. */
  def child(of: AnyRef, number: Int): AnyRef = kind(of) match {
    case "ListVector" => call(of, "getDataVector")
    case "MapVector" => field(call(of, "getDataVector"), number)
    case _ => field(of, number)
  }

  private def field(of: AnyRef, number: Int): AnyRef =
    call(of, "getChildrenFromFields").asInstanceOf[java.util.List[AnyRef]].get(number)

  private def kind(vector: AnyRef): String = vector.getClass.getSimpleName

  /** Whether these are the numbers of values in a dictionary. */
  private def isEncoded(vector: AnyRef): Boolean =
    call(call(vector, "getField"), "getDictionary") != null

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
    case "tiM" => "IntervalYearVector"
    case "tDu" => "DurationVector"
    case "ttn" => "TimeNanoVector"
    case "tsu:" => "TimeStampMicroVector"
    case "u" => "VarCharVector"
    case "z" => "VarBinaryVector"
    case other if other.startsWith("tsu:") => "TimeStampMicroTZVector"
    case other if other.startsWith("d:") => "DecimalVector"
    case _ => ""
  }
}
