package org.apache.spark.supply

import java.lang.reflect.Field

import org.apache.hadoop.hive.ql.exec.vector.{ColumnVector => OrcVector}
import org.apache.spark.sql.execution.datasources.orc.OrcColumnVector
import org.apache.spark.sql.execution.vectorized.{Dictionary, OffHeapColumnVector, OnHeapColumnVector, WritableColumnVector}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Where Spark's own vectors have their values. A vector that is closed has none.
 *
 * Public API: `getLongs` and the like copy the values, and make an object of each text.
 */
object VectorInternals {
  private def field(of: Class[_], name: String): Field = {
    val field = of.getDeclaredField(name)
    field.setAccessible(true)
    field
  }

  private def onHeap(name: String) = field(classOf[OnHeapColumnVector], name)
  private val heapNulls = onHeap("nulls")
  private val heapLengths = onHeap("arrayLengths")
  private val heapStarts = onHeap("arrayOffsets")
  private val heapValues =
    Array("longData", "doubleData", "intData", "floatData", "shortData", "byteData").map(onHeap)

  private def offHeap(name: String) = field(classOf[OffHeapColumnVector], name)
  private val offHeapNulls = offHeap("nulls")
  private val offHeapLengths = offHeap("lengthData")
  private val offHeapStarts = offHeap("offsetData")
  private val offHeapValues = offHeap("data")

  private val dictionaryField = field(classOf[WritableColumnVector], "dictionary")

  /** A byte for each row: 1 is null, 0 is not. */
  def nulls(of: OnHeapColumnVector): Array[Byte] = heapNulls.get(of).asInstanceOf[Array[Byte]]

  /** The array of its type; null: it has none. */
  def values(of: OnHeapColumnVector): AnyRef = {
    var found: AnyRef = null
    var i = 0
    while (found == null && i < heapValues.length) {
      found = heapValues(i).get(of)
      i += 1
    }
    found
  }

  /** How many values of the child each row has, and where they begin; null: there is no child. */
  def lengths(of: OnHeapColumnVector): Array[Int] = heapLengths.get(of).asInstanceOf[Array[Int]]

  def starts(of: OnHeapColumnVector): Array[Int] = heapStarts.get(of).asInstanceOf[Array[Int]]

  /** The addresses of the same; 0: there is none. */
  def nulls(of: OffHeapColumnVector): Long = offHeapNulls.getLong(of)

  def values(of: OffHeapColumnVector): Long = offHeapValues.getLong(of)

  def lengths(of: OffHeapColumnVector): Long = offHeapLengths.getLong(of)

  def starts(of: OffHeapColumnVector): Long = offHeapStarts.getLong(of)

  private val closeIfFreeable =
    classOf[ColumnarBatch].getMethods.find(_.getName == "closeIfFreeable")

  /**
   * Frees a batch that has been read, as Spark 4 does when it makes rows of it: a reader frees those
   * that it reuses. `isOurs`: it is not reused, and Spark would keep it until the task ends.
   */
  def free(batch: ColumnarBatch, isOurs: Boolean): Unit =
    if (isOurs) batch.close() else closeIfFreeable.foreach(_.invoke(batch))

  private val orcVector = field(classOf[OrcColumnVector], "baseData")

  /** The vector of ORC that has the values. */
  def inside(of: OrcColumnVector): OrcVector = orcVector.get(of).asInstanceOf[OrcVector]

  /** null: the values are no numbers in a dictionary. */
  def dictionary(of: WritableColumnVector): Dictionary =
    dictionaryField.get(of).asInstanceOf[Dictionary]
}
