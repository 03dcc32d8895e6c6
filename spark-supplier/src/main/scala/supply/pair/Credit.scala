package supply.pair

import java.util.concurrent.locks.LockSupport

import supply.core.{ContractException, RankEndedException, RankException, Deadline}
import supply.protocol.Layout.Constant

/**
 * What the rank has released, and the waiting for more of it. For the pair's thread, which says in
 * each call how many blocks are published.
 *
 * @param name
 *   of the pair, in messages
 * @param timeout
 *   limit, in seconds, of each wait
 */
private[pair] final class Credit(name: String, file: MappedFile, requests: RequestPipe,
    timeout: Double, published: Long) {
  import Credit._

  private var released = read(published)
  private var waited = 0L

  /** Blocks that the rank had released when it was last looked. */
  def releasedBlocks: Long = released

  /** Time spent waiting here. */
  def waitedNanos: Long = waited

  /** Waits until the rank has released the first `number` blocks. */
  def await(number: Long, published: Long): Unit = {
    if (released < number) released = read(published)
    if (released < number) timed {
      while (released < number) {
        look(number, published)
        if (released < number) awaitProgress(published)
      }
    }
  }

  /**
   * Waits until the rank has asked for what follows all that is published, END_OF_EPOCH last. It
   * may hold blocks of it still.
   */
  def awaitAcknowledged(published: Long): Unit = timed {
    var limit = new Deadline(timeout)
    while (!isAcknowledged(published)) {
      val before = released
      awaitRequest(limit, published, isAcknowledged(published),
        "has not asked for what follows the batch")
      if (released > before) limit = new Deadline(timeout)
    }
  }

  private def isAcknowledged(published: Long): Boolean = file.acknowledged >= published

  private def timed(body: => Unit): Unit = {
    val start = System.nanoTime()
    try body
    finally waited += System.nanoTime() - start
  }

  /** As the header has it. */
  private def read(published: Long): Long = {
    val number = file.released
    if (number < 0 || number > published) {
      throw new ContractException(
        s"$name: the header's released is $number, but only $published blocks are published")
    }
    number
  }

  /**
   * While the rank has several blocks to read there is no hurry, and the task only looks from time
   * to time. Where it waits at the pipe the rank has to wake it, release by release, and that takes
   * the rank as long as reading some hundred kilobytes.
   */
  private def look(number: Long, published: Long): Unit = {
    var since = System.nanoTime()
    while (released < number && published - released > 1 && System.nanoTime() - since < LookNanos && !Thread.currentThread().isInterrupted) {
      val before = released
      LockSupport.parkNanos(NapNanos)
      released = read(published)
      if (released > before) since = System.nanoTime()
    }
  }

  /** Waits until the rank has released one block more; the limit counts anew for each. */
  private def awaitProgress(published: Long): Unit = {
    val limit = new Deadline(timeout)
    val before = released
    while (released == before)
      awaitRequest(limit, published, released == published && published > 0, "released no block")
  }

  /**
   * isAll: whether the rank has all it is to have, so that it may have gone; stuck: what it is
   * without, at the limit.
   */
  private def awaitRequest(
      limit: Deadline, published: Long, isAll: => Boolean, stuck: String): Unit = {
    val outcome = requests.read(limit)
    released = read(published)
    outcome match {
      case RequestPipe.Received(request) if request.generation != file.generation => ()
      case RequestPipe.Received(request) => request.kind match {
          case Constant.REQUEST_ATTACH | Constant.REQUEST_RELEASE => ()
          case Constant.REQUEST_STOP => throw rankIsGone(published)
          case kind if kind >= 256 => ()
          case kind => throw new ContractException(s"$name: a request is of unknown kind $kind")
        }
      case RequestPipe.EndOfFile if isAll => ()
      case RequestPipe.EndOfFile => throw rankIsGone(published)
      case RequestPipe.TimedOut => throw rankIsStuck(stuck)
    }
  }

  def rankIsStuck(what: String): RankException =
    new RankException(
      f"$name%s: its rank (process ${file.rankPid}%d) lives, but $what%s for $timeout%.0f s: is it stuck, or " +
        "slow? (--timeout)")

  /** Why the rank has gone, from its own words if it left any: they stay in the mapping. */
  def rankIsGone(published: Long): RankEndedException = {
    val words = file.rankFailure
    if (words.nonEmpty) new RankEndedException(s"$name: the rank gave up: $words")
    else new RankEndedException(
      s"$name: its rank (process ${file.rankPid}) ended before it had taken all its data (it released " +
        s"${read(published)} of $published blocks): see the rank's own output for the reason")
  }
}

private object Credit {

  /** How long a task looks for a release itself, behind the last one, and how often. */
  private final val LookNanos = 2000000L
  private final val NapNanos = 50000L
}
