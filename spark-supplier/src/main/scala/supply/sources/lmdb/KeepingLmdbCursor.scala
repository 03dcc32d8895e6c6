package supply.sources.lmdb

import java.util.Arrays

import supply.data.KeepingCursor

/**
 * On a file that stays mapped: it keeps an element as the place of its key and value in LMDB's
 * pages.
 */
final class KeepingLmdbCursor(
    file: String, partition: LmdbPartition) extends LmdbCursor(file, partition) with KeepingCursor {

  /** Of each place the key, then the value. */
  private var addresses = new Array[Long](128)
  private var lengths = new Array[Int](128)

  override def keep(place: Int): Unit = {
    val key = 2 * place
    val value = key + 1
    if (key == addresses.length) {
      addresses = Arrays.copyOf(addresses, 2 * key)
      lengths = Arrays.copyOf(lengths, 2 * key)
    }
    addresses(key) = walk.key.addressOffset
    lengths(key) = walk.key.capacity()
    addresses(value) = walk.value.addressOffset
    lengths(value) = walk.value.capacity()
  }

  override def recall(place: Int): Unit = {
    val key = 2 * place
    val value = key + 1
    walk.key.wrap(addresses(key), lengths(key))
    walk.value.wrap(addresses(value), lengths(value))
    read()
  }
}
