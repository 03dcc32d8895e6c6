package supply.protocol

import java.nio.ByteBuffer

import supply.protocol.Layout.{Constant, MappedFileHeader => At}

/**
 * What the ranks of a run must do with their elements before a program reads them.
 *
 * @param fraction how much of the elements, in EXCHANGE_FRACTION_UNIT
 */
private[supply] final case class Exchange(policy: Int, seed: Long, fraction: Int) {
  /** Writes it into the header of a mapped file. */
  def write(header: ByteBuffer): Unit = {
    header.putInt(At.exchange, policy)
    header.putLong(At.exchangeSeed, seed)
    header.putInt(At.exchangeFraction, fraction)
    ()
  }
}

private[supply] object Exchange {
  /** Each rank reads what its task supplies. */
  val Off: Exchange = Exchange(0, 0, 0)

  /** Deals a fraction of the elements to all ranks. */
  def all(seed: Long, fraction: Int): Exchange = Exchange(Constant.EXCHANGE_ALL, seed, fraction)

  /** Reads it from the header of a mapped file. */
  def read(header: ByteBuffer): Exchange =
    Exchange(header.getInt(At.exchange), header.getLong(At.exchangeSeed),
      header.getInt(At.exchangeFraction))
}
