package supply.sources.lmdb

import org.apache.spark.Partition

/** `entries` entries of an LMDB, in key order, from `firstKey` on. */
final case class LmdbPartition(index: Int, firstKey: Array[Byte], entries: Long) extends Partition

object LmdbPartition {
  /** Plans `count` partitions that differ by at most one entry. Walks the keys, reads no values. */
  def plan(file: LmdbFile, count: Int): IndexedSeq[LmdbPartition] = {
    val firsts = (0 to count).map(split(file.entries, count, _))
    val walk = new LmdbWalk(file.path)
    try {
      var position = -1L
      (0 until count).map { i =>
        val size = firsts(i + 1) - firsts(i)
        if (size > 0) while (position < firsts(i) && walk.next()) position += 1
        LmdbPartition(i, if (size > 0) walk.keyBytes else Array.emptyByteArray, size)
      }
    } finally walk.close()
  }

  /** The first entry of part `i`. The first parts take the remainder: ranks take parts in turn. */
  private def split(entries: Long, parts: Int, i: Int): Long =
    entries / parts * i + math.min(i.toLong, entries % parts)
}
