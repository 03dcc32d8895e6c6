package supply.protocol

/**
 * What a rank gets in each whole epoch.
 *
 * @param steps blocks with elements; 0: not known
 */
final case class EpochCounts(elements: Long, steps: Long = 0)
