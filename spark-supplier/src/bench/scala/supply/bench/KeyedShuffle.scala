package supply.bench

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.functions.col

import supply.bench.KeyedPairs.Pair

/** One of Spark's own ways. */
private[bench] trait KeyedShuffle {
  /** What the shuffle gives. */
  def shuffled: RDD[_]

  /** The job: the elements of it, as GroupByTest and SortByTest count them, or a tally. */
  def run(): Either[Long, KeyedTally] = Left(shuffled.count())

  /** The same data, counted pair by pair. */
  def tally(): KeyedTally

  /** Removes the files of the shuffle. */
  final def close(): Unit = shuffled.cleanShuffleDependencies(blocking = true)
}

private[bench] object KeyedShuffle {
  /** Samples the keys at once, if it needs ranges of them. */
  def of(way: String, reducers: Int, rdd: RDD[Pair], frame: DataFrame): KeyedShuffle = way match {
    case "rdd group" => new GroupedPairs(rdd.groupByKey(reducers))
    case "rdd sort" => new SortedPairs(rdd.sortByKey(ascending = true, reducers))
    case "frame move" => new ShuffledRows(frame.repartition(reducers, col("key")))
    case "frame group" =>
      new ShuffledRows(frame.repartition(reducers, col("key"))) {
        override def run(): Either[Long, KeyedTally] = Right(tally())
      }
    case "frame sort" =>
      new ShuffledRows(
        frame.repartitionByRange(reducers, col("key")).sortWithinPartitions("key"))
  }
}

private final class GroupedPairs(override val shuffled: RDD[(Long, Iterable[Array[Byte]])])
    extends KeyedShuffle {
  override def tally(): KeyedTally =
    KeyedCount.of(shuffled.flatMapValues(values => values))
}

private final class SortedPairs(override val shuffled: RDD[Pair]) extends KeyedShuffle {
  override def tally(): KeyedTally = KeyedCount.of(shuffled)
}

/** Rows stay Spark's own: nothing is left out of them, and none becomes an object. */
private class ShuffledRows(frame: DataFrame) extends KeyedShuffle {
  override val shuffled: RDD[InternalRow] = frame.queryExecution.toRdd

  override def tally(): KeyedTally = KeyedCount.ofRows(shuffled)
}
