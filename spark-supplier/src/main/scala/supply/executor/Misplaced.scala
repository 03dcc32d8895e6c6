package supply.executor

/**
 * A task that has landed on another node than its rank's, and is to be placed again. The driver
 * counts.
 */
private[supply] object Misplaced extends UncountedEnd("supply-misplaced: ") {

  /** How often in a row a rank's task may land elsewhere. */
  final val Limit = 10

  /**
   * Ends the task, after a moment: the right node may have no executor yet. All of them together
   * take the time limit.
   */
  def end(message: String, timeout: Double): Nothing = {
    Thread.sleep((timeout * 1000 / Limit).toLong)
    end(message)
  }
}
