package supply.data

import java.util.Random

/**
 * Java's Random without its atomic updates. Java specifies the sequence of a seed, so it is the
 * same with every version. For one thread.
 */
private[data] final class UnsharedRandom(seed: Long) extends Random {
  private var state = (seed ^ UnsharedRandom.Multiplier) & UnsharedRandom.Mask

  override protected def next(bits: Int): Int = {
    state = (state * UnsharedRandom.Multiplier + 0xbL) & UnsharedRandom.Mask
    (state >>> (48 - bits)).toInt
  }
}

private object UnsharedRandom {
  private final val Multiplier = 0x5deece66dL
  private final val Mask = (1L << 48) - 1
}
