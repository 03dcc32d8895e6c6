package supply.sources.rows

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow

/** The length of each column's arrays: that of the first one found. For one thread. */
private[supply] final class ListLengths {
  private val found = mutable.Map.empty[Int, Int]

  /** None: no array, or an empty first one. If none is known, computes rows up to the first. */
  def of(column: Int, rows: RDD[InternalRow]): Option[Int] = found.get(column).orElse {
    val length = rows.filter(!_.isNullAt(column)).map(_.getArray(column).numElements()).take(
      1).headOption.filter(_ > 0)
    length.foreach(found.update(column, _))
    length
  }
}
