package supply.core

import java.util.concurrent.{ScheduledFuture, TimeUnit}

/** The end of a wait, `seconds` after its start. One thread restarts it; any thread reads it. */
final class Deadline(@volatile private var allowed: Double) {
  @volatile private var end = 0L
  restart(allowed)

  /** The length of the wait. */
  def seconds: Double = allowed

  def remainingNanos: Long = end - System.nanoTime()

  def passed: Boolean = remainingNanos <= 0

  /** Starts the wait again, for example because there was progress. */
  def restart(seconds: Double = allowed): Unit = {
    allowed = seconds
    end = System.nanoTime() + (seconds * 1e9).toLong
  }

  /**
   * Calls `probe` every `everyMillis` until it finds something, and once after the deadline: a
   * process that was suspended past it still finds what is there. None: it found nothing.
   */
  def find[A](everyMillis: Long)(probe: => Option[A]): Option[A] = {
    var isLast = passed
    var found = probe
    while (found.isEmpty && !isLast) {
      Thread.sleep(everyMillis)
      isLast = passed
      found = probe
    }
    found
  }

  /** Polls a condition; false: the deadline has passed, and it still does not hold. */
  def poll(everyMillis: Long)(condition: => Boolean): Boolean =
    find(everyMillis)(if (condition) Some(()) else None).isDefined
}

object Deadline {
  /** About 30 years: their nanoseconds are a Long. */
  private val maxSeconds = 1e9

  /** Throws a ConfigException if the option `name` is no time to wait for. */
  def require(name: String, seconds: Double): Unit =
    if (!isAllowed(seconds)) throw new ConfigException(
      s"$name is $seconds: it must be above 0 seconds, and at most ${maxSeconds.toLong}")

  def isAllowed(seconds: Double): Boolean = seconds > 0 && seconds <= maxSeconds

  private[supply] val timer = Threads.scheduler("supply-deadline")

  /**
   * Calls `wake` if a call still blocks when its deadline passes. Neither a read nor a write of a
   * pipe takes a timeout in the JVM; closing the pipe's channel ends it. For one thread. The
   * deadline of a call must not end before that of the call before it.
   *
   * One check stays scheduled across calls: scheduling one per call would wake the timer's thread
   * once a block. When [[apply]] returns, `wake` has either ended or does not run. Close it: a check
   * can be due in days, and the timer would keep the pipe until then.
   */
  final class Guard(wake: => Unit) extends AutoCloseable {
    private var guarded: Deadline = null
    private var scheduled: ScheduledFuture[_] = null

    def apply[A](deadline: Deadline)(body: => A): A = {
      synchronized {
        guarded = deadline
        if (scheduled == null) scheduleCheck()
      }
      try body
      finally synchronized { guarded = null }
    }

    override def close(): Unit = synchronized {
      if (scheduled != null) scheduled.cancel(false)
      scheduled = null
    }

    private def scheduleCheck(): Unit =
      scheduled = timer.schedule((() => check()): Runnable, math.max(0L, guarded.remainingNanos),
        TimeUnit.NANOSECONDS)

    private def check(): Unit = synchronized {
      scheduled = null
      if (guarded != null) {
        if (guarded.passed) wake else scheduleCheck()
      }
    }
  }
}
