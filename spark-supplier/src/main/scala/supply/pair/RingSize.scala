package supply.pair

import supply.core.Size
import supply.protocol.Layout.Constant

/** The sizes of ring and block, by the rules of libsupply (mpi-client/src/files/options.c). */
private[pair] object RingSize {
  private final val DefaultBlocks = 4
  private final val DefaultBlockBytes = 2L << 20

  /** The most that ring=auto chooses, if blocks are not larger than half of it. */
  private final val AutomaticMax = 16L << 20

  /**
   * Bytes of the whole mapped file, from the words after its path. With ring=auto, the largest that
   * the caches of the rank's node may lead to.
   */
  def mappedBytes(place: String, words: Seq[String]): Long = {
    def size(name: String) = words.find(_.startsWith(name)).map(word =>
      Size.bytes(s"$place: $name", word.stripPrefix(name)))
    if (words.contains("ring=auto"))
      automatic(roundUp(size("block=").getOrElse(DefaultBlockBytes), Constant.BLOCK_BYTES_UNIT))
    else chosen(size("ring="), size("block="))
  }

  private def automatic(block: Long): Long = Constant.RING_OFFSET +
    (if (block > AutomaticMax / 2) DefaultBlocks * block else roundUp(AutomaticMax, block))

  private def chosen(ring: Option[Long], blockWord: Option[Long]): Long = {
    val block = roundUp(
      blockWord.getOrElse(ring.map(r => math.max(1L, r / DefaultBlocks)).getOrElse(
          DefaultBlockBytes)), Constant.BLOCK_BYTES_UNIT)
    Constant.RING_OFFSET + ring.map(roundUp(_, block)).getOrElse(DefaultBlocks * block)
  }

  private def roundUp(value: Long, unit: Long): Long = (value + unit - 1) / unit * unit
}
