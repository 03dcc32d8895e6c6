package supply.bench

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.storage.StorageLevel

import supply.bench.KeyedPairs.Pair
import supply.run.SupplyJob
import supply.task.SupplySettings

/** Key-value pairs in Spark's memory: Spark's own shuffles of them, and the same for ranks. */
private[bench] final class KeyedSession(sc: SparkContext) {
  private lazy val spark = SparkSession.builder().getOrCreate()
  private var made = Option.empty[(RDD[Pair], DataFrame)]

  def run(command: KeyedCommand): AnyRef = command match {
    case make: MakeKeyed => persist(KeyedPairs.rdd(sc, make))
    case shuffle: ShuffleKeyed => measure(shuffle)
    case supply: SupplyKeyed => measure(supply)
  }

  private def persist(pairs: RDD[Pair]): KeyedTally = {
    made.foreach { case (rdd, frame) =>
      frame.unpersist(blocking = true)
      rdd.unpersist(blocking = true)
    }
    val rdd = pairs.persist(StorageLevel.MEMORY_ONLY)
    val frame = spark.createDataFrame(rdd).toDF("key", "value").persist(StorageLevel.MEMORY_ONLY)
    frame.queryExecution.toRdd.count()
    made = Some((rdd, frame))
    val groups = rdd.keys.distinct().count()
    val tally = KeyedCount.of(rdd).copy(groups = groups)
    // Collect the garbage of making the pairs now, not during a measurement.
    System.gc()
    tally
  }

  private def measure(command: ShuffleKeyed): Shuffled = {
    val (rdd, frame) = data
    val stage = new ReadStage(sc)
    try {
      val start = System.nanoTime()
      val shuffle = KeyedShuffle.of(command.way, command.reducers, rdd, frame)
      try {
        val answer = shuffle.run()
        val nanos = System.nanoTime() - start
        val read = stage.await()
        val tally = answer.toOption.orElse(if (command.verify) Some(shuffle.tally()) else None)
        Shuffled(nanos, read.millis, read.bytes, answer.left.toOption, tally)
      } finally shuffle.close()
    } finally stage.close()
  }

  private def measure(command: SupplyKeyed): Supplied = {
    val (rdd, frame) = data
    val start = System.nanoTime()
    if (command.asFrame) {
      val options = Map("ranks" -> command.ranks.toString, "mapped-files" -> command.mappedFiles,
        "named-pipes" -> command.namedPipes, "timeout" -> command.timeout.toString)
      frame.write.format("supply").mode("append").options(options).save()
    } else
      SupplyJob.run(sc,
        SupplySettings(command.ranks, command.mappedFiles, command.namedPipes,
          timeout = command.timeout))(new KeyedSource(rdd))
    Supplied(start, System.nanoTime() - start)
  }

  private def data: (RDD[Pair], DataFrame) =
    made.getOrElse(throw new IllegalStateException("there are no pairs: send make_keyed first"))
}
