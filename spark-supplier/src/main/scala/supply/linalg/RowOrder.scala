package supply.linalg

import org.apache.spark.mllib.linalg.distributed.IndexedRow
import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}

/** Rows in an order, in no more partitions than there are ranks: rank after rank gets one. */
private[linalg] object RowOrder {
  /** In the order of the RDD. */
  def kept[A](rows: RDD[A], ranks: Int): RDD[A] =
    rows.coalesce(ranks, shuffle = false, Some(Neighbours))(null)

  /** In the order of their index. Rows that are in order already are not shuffled. */
  def byIndex(rows: RDD[IndexedRow], ranks: Int): RDD[IndexedRow] = {
    val parts = rows.mapPartitions(rows => IndexRange.of(rows.map(_.index)).iterator).collect()
    val isOrdered = parts.forall(_.isAscending) &&
      parts.zip(parts.drop(1)).forall { case (part, next) => part.last < next.first }
    if (isOrdered) kept(rows, ranks) else sorted(rows, ranks)
  }

  private def sorted(rows: RDD[IndexedRow], ranks: Int): RDD[IndexedRow] =
    rows.map(row => row.index -> row).sortByKey(ascending = true, ranks).values
}

/** The indices of a partition that is not empty. isAscending: each is larger than the one before. */
private[linalg] final case class IndexRange(first: Long, last: Long, isAscending: Boolean)

private[linalg] object IndexRange {
  def of(indices: Iterator[Long]): Option[IndexRange] =
    if (indices.isEmpty) None
    else {
      val first = indices.next()
      Some(indices.foldLeft(IndexRange(first, first, isAscending = true)) { (range, index) =>
        IndexRange(first, index, range.isAscending && index > range.last)
      })
    }
}

/** Partitions that follow each other become one: Spark's own choice would change their order. */
private[linalg] object Neighbours extends PartitionCoalescer with Serializable {
  override def coalesce(most: Int, parent: RDD[_]): Array[PartitionGroup] = {
    val partitions = parent.partitions
    val groups = math.min(most, partitions.length)
    def begin(i: Int) = (partitions.length.toLong * i / groups).toInt
    Array.tabulate(groups) { i =>
      val group = new PartitionGroup(None)
      group.partitions ++= partitions.slice(begin(i), begin(i + 1))
      group
    }
  }
}
