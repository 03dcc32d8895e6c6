package supply.lmdb

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import scala.annotation.tailrec

import org.apache.spark.{Partition, SparkEnv}
import org.fusesource.lmdbjni.{Constants, DirectBuffer, GetOp, LMDBException, SeekOp}

import supply.core.SourceException
import supply.run.ContainerMemory
import supply.source.ForeignFile

/** `entries` entries of an LMDB, in key order, from `firstKey` on, without the keys of `skip`. */
private[supply] final case class LmdbPartition(index: Int, firstKey: Array[Byte], entries: Long,
    skip: Seq[Array[Byte]] = Nil) extends Partition

private[supply] object LmdbPartition {
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

/** Walks over the entries of one partition. `walk` is at the current one. For one thread. */
private[lmdb] final class PartitionWalk(file: String, partition: LmdbPartition, window: Long)
    extends AutoCloseable {
  val walk = new LmdbWalk(file, window, partition.skip)
  private var taken = 0L

  /** Moves to the next entry; false at the end. */
  def next(): Boolean = taken < partition.entries && {
    val found = if (taken == 0) walk.seek(partition.firstKey) else walk.next()
    if (!found)
      throw new SourceException(
        s"the LMDB $file has changed since it was planned: partition ${partition.index} ended after " +
          s"$taken of ${partition.entries} entries. It must not be written to during a run")
    taken += 1
    true
  }

  /** Reads a Datum; `key` is for the message if it is none. */
  def read(datum: DatumReader, key: DirectBuffer, value: DirectBuffer, valueBytes: Int): Unit =
    PartitionWalk.read(datum, file, key, value, valueBytes)

  def printable(key: DirectBuffer): String = PartitionWalk.printable(key)

  override def close(): Unit = walk.close()
}

private[lmdb] object PartitionWalk {
  def read(datum: DatumReader, file: String, key: DirectBuffer, value: DirectBuffer,
      valueBytes: Int): Unit =
    try datum.read(value, valueBytes)
    catch {
      case e: DatumReader.NotADatum =>
        throw new SourceException(
          s"the value of key '${printable(key)}' of the LMDB $file is not a Datum ($valueBytes bytes): if this entry is none, " +
            s"leave it out (--skip-keys, option skipKeys: docs/LMDB.md). As a Datum, ${e.getMessage}")
    }

  def printable(key: DirectBuffer): String = Datum.printable(LmdbWalk.bytes(key))
}

/**
 * Walks over an LMDB in key order. `key` and `value` point into its pages until the next move. Maps
 * the file again after `window` bytes of entries ([[MappedWindow]]). Passes the keys of `skip` over.
 * For one thread.
 */
private[supply] final class LmdbWalk(file: String, window: Long = MappedWindow.bytes,
    skip: Seq[Array[Byte]] = Nil) extends AutoCloseable {
  private var mapping = new LmdbMapping(file, own = window < Long.MaxValue)
  private var passed = 0L
  private var open = true

  val key = new DirectBuffer(ByteBuffer.allocateDirect(0))
  val value = new DirectBuffer(ByteBuffer.allocateDirect(0))

  /** Where in the file an address within the current entry is. */
  def offsetOf(address: Long, of: ForeignFile): Long = mapping.places.offsetOf(address, of)

  /** Moves to the first entry whose key is at least `first`, also one of `skip`; false: none is. */
  def seek(first: Array[Byte]): Boolean = {
    val wanted = ByteBuffer.allocateDirect(first.length)
    wanted.put(first)
    key.wrap(wanted)
    mapping.cursor.seekPosition(key, value, SeekOp.RANGE) != LMDBException.NOTFOUND
  }

  /** Whether the next move maps the file again: addresses of entries are then not valid any more. */
  def mapsAgain: Boolean = passed >= window

  /** Moves to the next entry (the first, at the start); false if there is none. */
  def next(): Boolean = {
    if (mapsAgain) mapAgain()
    val found = move(Constants.NEXT)
    if (found) passed += key.capacity() + value.capacity()
    found
  }

  /** Moves to the last entry; false if there is none. */
  def last(): Boolean = {
    val found = mapping.cursor.position(key, value, Constants.LAST) != LMDBException.NOTFOUND
    found && (!isSkipped || move(Constants.PREV))
  }

  /** Moves over entries in that direction, to one that is not skipped. */
  @tailrec private def move(direction: GetOp): Boolean =
    if (mapping.cursor.position(key, value, direction) == LMDBException.NOTFOUND) false
    else !isSkipped || move(direction)

  private def isSkipped: Boolean = skip.exists(skipped =>
    skipped.length == key.capacity() && Arrays.equals(skipped, keyBytes))

  private def mapAgain(): Unit = {
    val here = keyBytes
    mapping.close()
    mapping = new LmdbMapping(file, own = true)
    passed = 0
    if (!seek(here)) throw new SourceException(
      s"the LMDB $file has changed during a run: it must not be written to")
  }

  /** A copy of the key. */
  def keyBytes: Array[Byte] = LmdbWalk.bytes(key)

  override def close(): Unit = if (open) {
    open = false
    mapping.close()
  }
}

private[lmdb] object LmdbWalk {
  /** A copy of all bytes of the buffer. */
  def bytes(of: DirectBuffer): Array[Byte] = {
    val copy = new Array[Byte](of.capacity())
    of.getBytes(0, copy)
    copy
  }
}

/**
 * How many bytes of entries a walk passes before it maps the file again. YARN counts all mapped
 * pages as memory of the container, even those that the kernel could drop, and would kill the
 * executor. So on YARN a walk maps no more than a window. Elsewhere the whole file stays mapped,
 * because faulting its pages in again takes a quarter of a task's time.
 */
private[supply] object MappedWindow {
  /** The window of each task, in bytes. An element larger than it is mapped whole. */
  def bytes: Long = if (Option(SparkEnv.get).exists(_.conf.get("spark.master", "") == "yarn"))
    ContainerMemory.PagesOfSource
  else Long.MaxValue
}
