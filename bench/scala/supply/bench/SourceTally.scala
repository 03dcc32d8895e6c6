package supply.bench

import java.util.zip.CRC32

import org.apache.spark.rdd.RDD

import supply.source.Datum

/** Counts what a source holds, the way a rank counts what it receives. */
private[bench] object SourceTally {

  def of(elements: RDD[Datum.Tuple]): Tally = {
    val (count, bytes, crcSum) = elements.mapPartitions { tuples =>
      var count = 0L
      var bytes = 0L
      var crcSum = 0L
      val crc = new CRC32
      tuples.foreach { tuple =>
        crc.reset()
        crc.update(tuple._7)
        count += 1
        bytes += tuple._7.length
        crcSum += crc.getValue
      }
      Iterator.single((count, bytes, crcSum))
    }.fold((0L, 0L, 0L)) { (a, b) => (a._1 + b._1, a._2 + b._2, a._3 + b._3) }
    Tally(count, bytes, BigInt(java.lang.Long.toUnsignedString(crcSum)))
  }
}
