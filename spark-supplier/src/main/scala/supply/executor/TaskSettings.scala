package supply.executor

import supply.plan.Hostfile
import supply.protocol.Schema

/**
 * What all tasks of one pinned job have in common.
 *
 * @param user what the user asks for
 * @param run number of this run: random, not 0
 * @param plan the plan's fingerprint
 * @param wholeBlocks a block that is full before it has `blockElements` elements is an error
 * @param stream the part of a stream that this job supplies; None: a run, to its end
 */
final case class TaskSettings(
    user: SupplySettings,
    hosts: Hostfile,
    schema: Schema,
    mainColumn: Option[Int],
    run: Long = 0,
    plan: Long = 0,
    wholeBlocks: Boolean = false,
    stream: Option[StreamPart] = None) {
  /** Whether END_OF_DATA follows. */
  def isEnd: Boolean = stream.forall(_.isEnd)

  /** Elements after which a block is closed. */
  def blockElements: Int = user.blockElements.getOrElse(Int.MaxValue)
}
