package supply.pair

import java.util.concurrent.locks.LockSupport

import supply.core.{ContractException, Deadline, RankEndedException, RankException}
import supply.protocol.Layout.Constant

/**
 * The blocks that the rank has released, and waits, of `timeout` seconds each, for more. For the
 * pair's thread, which passes the number of published blocks to each call. `watch`: of ranks that
 * share a ring, is called each second of a wait with its seconds so far.
 */
private[supply] final class Credit(name: String, file: MappedFile, requests: Requests,
    timeout: Double, published: Long, watch: Option[Double => Unit]) {
  import Credit._

  private var released = read(published)
  private var waited = 0L
  private var lastWait = 0L

  /** Blocks that the rank had released at the last check. */
  def releasedBlocks: Long = released

  /** Time spent waiting here. */
  def waitedNanos: Long = waited

  /** Waits until the rank has released the first `number` blocks. */
  def await(number: Long, published: Long): Unit = {
    if (released < number) released = read(published)
    if (released < number) timed {
      while (released < number) {
        poll(number, published)
        if (released < number) awaitProgress(published)
      }
    }
  }

  /** Waits until the rank has asked for the block after the last one, an END_OF_EPOCH. */
  def awaitAcknowledged(published: Long): Unit = timed {
    val deadline = new Deadline(timeout)
    while (!isAcknowledged(published)) {
      val before = released
      awaitRequest(deadline, published, isAcknowledged(published),
        "has not asked for what follows the batch")
      if (released > before) deadline.restart()
    }
  }

  private def isAcknowledged(published: Long): Boolean = file.acknowledged >= published

  private def timed(body: => Unit): Unit = {
    val start = System.nanoTime()
    try body
    finally {
      lastWait = System.nanoTime() - start
      waited += lastWait
    }
  }

  /** The number in the header. */
  private def read(published: Long): Long = {
    val number = file.released
    if (number < 0 || number > published || published - number > file.blockCount)
      throw new ContractException(
        s"$name: the header's released is $number, with $published blocks published in a ring of ${file.blockCount}")
    number
  }

  /**
   * While the rank has several blocks to read, the task only polls the header: to be woken for each
   * release would cost the rank as much time as reading some hundred kilobytes. If the last wait was
   * short, it yields its core instead of sleeping, which takes longer than reading a small block.
   */
  private def poll(number: Long, published: Long): Unit = {
    val spins = if (lastWait < SpinNanos) SpinNanos else 0
    var since = System.nanoTime()
    while (released < number && published - released > 1 &&
      System.nanoTime() - since < PollNanos && !Thread.currentThread().isInterrupted) {
      val before = released
      if (System.nanoTime() - since < spins) Thread.`yield`() else LockSupport.parkNanos(ParkNanos)
      released = read(published)
      if (released > before) since = System.nanoTime()
    }
  }

  /** Waits until the rank has released one more block. */
  private def awaitProgress(published: Long): Unit = {
    val deadline = new Deadline(timeout)
    val before = released
    while (released == before)
      awaitRequest(deadline, published, released == published && published > 0, "released no block")
  }

  /**
   * Waits for one request, and reads the header after it. `mayExit`: whether the rank has all that
   * it needs now. `stuck`: names what it has not done when the deadline passes, for
   * the message.
   */
  private def awaitRequest(
      deadline: Deadline, published: Long, mayExit: => Boolean, stuck: String): Unit = {
    val before = released
    val outcome = requests.read(watch.fold(deadline)(_ =>
        new Deadline(math.min(WatchSeconds, math.max(0, deadline.remainingNanos / 1e9)))))
    released = read(published)
    outcome match {
      case RequestPipe.Received(request) if request.generation != file.generation => ()
      case RequestPipe.Received(request) => request.kind match {
          case Constant.REQUEST_ATTACH | Constant.REQUEST_RELEASE => ()
          case Constant.REQUEST_STOP => throw rankIsGone(published)
          case kind => throw new ContractException(s"$name: a request is of unknown kind $kind")
        }
      case RequestPipe.EndOfFile => if (!mayExit) throw rankIsGone(published)
      case RequestPipe.TimedOut if !deadline.passed =>
        watch.foreach(_(deadline.seconds - deadline.remainingNanos / 1e9))
      case RequestPipe.TimedOut => if (!mayExit && released == before) throw rankIsStuck(stuck)
    }
  }

  def rankIsStuck(what: String): RankException =
    new RankException(
      f"$name%s: its rank (process ${file.rankPid}%d) lives, but $what%s for $timeout%.0f s: is it stuck, or " +
        "slow? (--rank-timeout)",
      isTimeout = true)

  /** Why the rank has gone. If it left a text, that is still in the mapped file. */
  def rankIsGone(published: Long): RankEndedException = {
    val text = file.rankFailure
    if (text.nonEmpty) new RankEndedException(s"$name: the rank failed: $text")
    else new RankEndedException(
      s"$name: its rank (process ${file.rankPid}) ended before it had taken all its data (it released " +
        s"${read(published)} of $published blocks): see the rank's own output for the reason")
  }
}

private object Credit {
  /** How long a task polls after the last release, how long of that without sleeping, and how long it sleeps. */
  private final val PollNanos = 2000000L
  private final val SpinNanos = 200000L
  private final val ParkNanos = 50000L

  private final val WatchSeconds = 1.0
}
