package supply.sources.rows

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow

/**
 * The length of the arrays of each column: the length of the first array that was found in any
 * rows. For one thread.
 */
private[supply] final class ListLengths {
  private val found = mutable.Map.empty[Int, Int]

  /**
   * None if no array was found, or the first one is empty. If no array of the column is known yet,
   * this computes rows up to the first one.
   */
  def of(column: Int, rows: RDD[InternalRow]): Option[Int] = found.get(column).orElse {
    val length = rows.filter(!_.isNullAt(column)).map(_.getArray(column).numElements()).take(
      1).headOption.filter(_ > 0)
    length.foreach(found.update(column, _))
    length
  }
}
