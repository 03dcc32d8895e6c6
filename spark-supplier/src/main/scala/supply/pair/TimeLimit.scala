package supply.pair

import java.util.concurrent.{ScheduledThreadPoolExecutor, ThreadFactory, TimeUnit}

/** A wait's end: so many seconds from its making. */
final class TimeLimit(val seconds: Double) {
  private val end = System.nanoTime() + (seconds * 1e9).toLong

  def remainingNanos: Long = end - System.nanoTime()

  def passed: Boolean = remainingNanos <= 0
}

object TimeLimit {

  private val timer = {
    val factory: ThreadFactory = task => {
      val thread = new Thread(task, "supply-time-limit")
      thread.setDaemon(true)
      thread
    }
    val executor = new ScheduledThreadPoolExecutor(1, factory)
    executor.setRemoveOnCancelPolicy(true)
    executor
  }

  /**
   * Runs `body`, which may block in a system call, and calls `wake` if the limit passes before it ends. A read
   * of a pipe has no time limit of its own in the JVM; closing its channel ends it.
   */
  def guarding[A](limit: TimeLimit)(wake: => Unit)(body: => A): A = {
    val pending = timer.schedule(new Runnable { def run(): Unit = wake },
      math.max(0L, limit.remainingNanos), TimeUnit.NANOSECONDS)
    try body
    finally { pending.cancel(false); () }
  }
}
