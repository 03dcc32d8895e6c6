package supply.sources.lmdb

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import org.apache.spark.Partition

import supply.core.SourceException

/** `entries` entries of an LMDB, in key order, from `firstKey` on, without the keys of `skip`. */
final case class LmdbPartition(index: Int, firstKey: Array[Byte], entries: Long,
    skip: Seq[Array[Byte]] = Nil) extends Partition

object LmdbPartition {
  /**
   * Plans `count` partitions that differ by at most one entry. Walks the keys. The first and the
   * last value must be Datums: a wrong database is refused here, and not by a task.
   */
  def plan(file: LmdbFile, count: Int, skip: Seq[String] = Nil): IndexedSeq[LmdbPartition] = {
    // In one order: they are part of the data's identity.
    val keys = skip.map(_.trim).filter(_.nonEmpty).distinct.sorted.map(_.getBytes(UTF_8))
    val entries = file.entries - keys.count(has(file, _))
    if (entries == 0)
      throw new SourceException(s"the LMDB ${file.path} has no entries but those of --skip-keys")
    val firsts = (0 to count).map(split(entries, count, _))
    requireDatums(file, keys)
    val walk = new LmdbWalk(file.path, skip = keys)
    try {
      var position = -1L
      (0 until count).map { i =>
        val size = firsts(i + 1) - firsts(i)
        if (size > 0) while (position < firsts(i) && walk.next()) position += 1
        LmdbPartition(i, if (size > 0) walk.keyBytes else Array.emptyByteArray, size, keys)
      }
    } finally walk.close()
  }

  private def has(file: LmdbFile, key: Array[Byte]): Boolean = {
    val walk = new LmdbWalk(file.path)
    try walk.seek(key) && Arrays.equals(walk.keyBytes, key)
    finally walk.close()
  }

  private def requireDatums(file: LmdbFile, skip: Seq[Array[Byte]]): Unit = {
    val walk = new LmdbWalk(file.path, skip = skip)
    try {
      val datum = new DatumReader
      if (walk.next())
        PartitionWalk.read(datum, file.path, walk.key, walk.value, walk.value.capacity())
      if (walk.last())
        PartitionWalk.read(datum, file.path, walk.key, walk.value, walk.value.capacity())
    } finally walk.close()
  }

  /** The first entry of part `i`. The first parts take the remainder: ranks take parts in turn. */
  private def split(entries: Long, parts: Int, i: Int): Long =
    entries / parts * i + math.min(i.toLong, entries % parts)
}
