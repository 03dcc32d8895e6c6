package supply.bench

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.storage.StorageLevel

import supply.source.{Datum, DatumSource, LmdbSource, Source}
import supply.source.lmdb.LmdbRDD

/** The source that is open, and what is done with it. */
private[bench] final class BenchSession(sc: SparkContext) {
  private var source: Option[Source] = None

  def run(command: Command): AnyRef = command match {
    case generate: Generate => persist(GeneratedElements.rdd(sc, generate), generate.storageLevel)
    case OpenLmdb(path, partitions, "NONE") =>
      open(new LmdbSource(LmdbRDD.open(sc, path, partitions)))
      Done()
    case OpenLmdb(path, partitions, level) => persist(LmdbRDD.open(sc, path, partitions), level)
    case cycle: Cycle => new CycleJob(sc, opened, cycle).run()
    case latency: Latency => new LatencyJob(sc, latency).run()
  }

  private def opened: Source = source.getOrElse(throw new IllegalStateException("no source is open"))

  private def open(opening: Source): Unit = {
    source.foreach(_.rdd.unpersist(blocking = true))
    source = Some(opening)
  }

  /** Persists all elements, counting them from what Spark has persisted. */
  private def persist(elements: RDD[Datum.Tuple], level: String): Tally = {
    open(new DatumSource(elements.persist(StorageLevel.fromString(level))))
    elements.count()
    val tally = SourceTally.of(elements)
    // What making the elements has left must not be collected while something is measured.
    System.gc()
    tally
  }
}
