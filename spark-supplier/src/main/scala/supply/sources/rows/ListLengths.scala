package supply.sources.rows

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow

/**
 * How many numbers the arrays of each column have: as many as the first one that was found in any
 * rows.
 */
private[supply] final class ListLengths {
  private val found = mutable.Map.empty[Int, Int]

  /**
   * None where no array has been found, or the first one is empty. Computes rows up to the first
   * array, where there was none before.
   */
  def of(column: Int, rows: RDD[InternalRow]): Option[Int] = found.get(column).orElse {
    val length = rows.filter(!_.isNullAt(column)).map(_.getArray(column).numElements()).take(
      1).headOption.filter(_ > 0)
    length.foreach(found.update(column, _))
    length
  }
}
