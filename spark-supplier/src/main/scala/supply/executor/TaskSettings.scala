package supply.executor

import supply.plan.Hostfile
import supply.protocol.Schema

/**
 * What all tasks of one pinned job have in common. `run` is a random number, not 0; `plan` is the
 * plan's fingerprint; `wholeBlocks`: a block with too few elements is an error; `stream`: None for
 * a
 * run, to its end.
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
