package supply.sources.lmdb

import java.util.Arrays

import scala.collection.mutable.ArrayBuffer

import org.fusesource.lmdbjni.DirectBuffer

/** Entries of an LMDB that a cursor keeps in numbered places, see [[supply.data.KeepingCursor]]. */
private[lmdb] sealed abstract class KeptEntries {
  /** The recalled entry: its key, and the buffer whose first `valueBytes` bytes are its value. */
  final val key = new DirectBuffer(Array.emptyByteArray)
  final val value = new DirectBuffer(Array.emptyByteArray)
  var valueBytes = 0

  def keep(place: Int, key: DirectBuffer, value: DirectBuffer): Unit

  def recall(place: Int): Unit
}

/** Keeps the addresses of entries in a file that stays mapped. */
private[lmdb] final class MappedEntries extends KeptEntries {
  /** For each place the key, then the value. */
  private var addresses = new Array[Long](128)
  private var lengths = new Array[Int](128)

  override def keep(place: Int, key: DirectBuffer, value: DirectBuffer): Unit = {
    val at = 2 * place
    if (at == addresses.length) {
      addresses = Arrays.copyOf(addresses, 2 * at)
      lengths = Arrays.copyOf(lengths, 2 * at)
    }
    addresses(at) = key.addressOffset
    lengths(at) = key.capacity()
    addresses(at + 1) = value.addressOffset
    lengths(at + 1) = value.capacity()
  }

  override def recall(place: Int): Unit = {
    val at = 2 * place
    key.wrap(addresses(at), lengths(at))
    value.wrap(addresses(at + 1), lengths(at + 1))
    valueBytes = lengths(at + 1)
  }
}

/** Keeps copies, in memory that later entries of the same place use again. */
private[lmdb] final class CopiedEntries extends KeptEntries {
  private final class Copy {
    var key = Array.emptyByteArray
    var value = Array.emptyByteArray
    var valueBytes = 0
  }

  private val copies = new ArrayBuffer[Copy]

  override def keep(place: Int, key: DirectBuffer, value: DirectBuffer): Unit = {
    if (place == copies.size) copies += new Copy
    val copy = copies(place)
    if (copy.key.length != key.capacity()) copy.key = new Array(key.capacity())
    key.getBytes(0, copy.key)
    copy.valueBytes = value.capacity()
    if (copy.value.length < copy.valueBytes) copy.value = new Array(copy.valueBytes)
    value.getBytes(0, copy.value, 0, copy.valueBytes)
    ()
  }

  override def recall(place: Int): Unit = {
    val copy = copies(place)
    key.wrap(copy.key)
    value.wrap(copy.value)
    valueBytes = copy.valueBytes
  }
}
