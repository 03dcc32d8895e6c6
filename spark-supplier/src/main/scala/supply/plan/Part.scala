package supply.plan

/**
 * What a rank gets of a partition in one epoch: not the first `done` elements, which an earlier run
 * has supplied. A `share` ends it earlier, or repeats elements.
 */
final case class Part(partition: Int, done: Long = 0, share: Option[Share] = None)
