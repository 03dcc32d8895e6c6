package supply.bench

import org.apache.spark.SparkContext
import org.apache.spark.storage.StorageLevel

import supply.lmdb.{LmdbRDD, LmdbSource}
import supply.source.Source

/** Runs commands on the source that is open. */
private[bench] final class BenchSession(sc: SparkContext) {
  private var source: Option[Source] = None
  private lazy val keyed = new KeyedSession

  def run(command: Command): AnyRef = command match {
    case generate: Generate =>
      val batches = GeneratedElements.rdd(sc, generate).mapPartitions(part =>
        DatumBatch.of(new DatumCursor(part)))
      open(new DatumBatchSource(batches.persist(StorageLevel.MEMORY_ONLY)))
      tally(SourceTally.of(batches)(new DatumBatchCursor(_)))
    case OpenLmdb(path, partitions, inPlace) =>
      open(new LmdbSource(LmdbRDD.open(sc, path, partitions), inPlace))
      Done()
    case cycle: Cycle => new CycleJob(sc, opened, cycle).run()
    case command: KeyedCommand => keyed.run(command)
  }

  private def opened: Source =
    source.getOrElse(throw new IllegalStateException("no source is open"))

  private def open(opening: Source): Unit = {
    source.foreach(_.rdd.unpersist(blocking = true))
    source = Some(opening)
  }

  /** Counts twice: Spark persists the elements in the first pass and reads them in the second. */
  private def tally(count: => Tally): Tally = {
    count
    val tally = count
    // Collect the garbage of making the elements now, not during a measurement.
    System.gc()
    tally
  }
}
