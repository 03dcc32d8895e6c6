package supply.core

import java.util.concurrent.{ScheduledThreadPoolExecutor, ThreadFactory, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean

/** A wait's end: so many seconds from its making. */
final class Deadline(val seconds: Double) {
  private val end = System.nanoTime() + (seconds * 1e9).toLong

  def remainingNanos: Long = end - System.nanoTime()

  def passed: Boolean = remainingNanos <= 0
}

object Deadline {

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
   * Calls `wake` when what blocks in a system call passes its limit. Neither a read nor a write of
   * a pipe has a time limit of its own in the JVM; closing its channel ends it. For one thread.
   *
   * A check stays in the timer when its call has ended, and goes by what is being done when its
   * time comes: a timer set anew for each call would wake its thread each time, once a block.
   */
  final class Guard(wake: => Unit) {
    @volatile private var guarded: Deadline = null
    private val isChecked = new AtomicBoolean

    def apply[A](limit: Deadline)(body: => A): A = {
      guarded = limit
      checkAtEndOf(limit)
      try body
      finally guarded = null
    }

    private def checkAtEndOf(limit: Deadline): Unit = if (isChecked.compareAndSet(false, true)) {
      timer.schedule((() => check()): Runnable, math.max(0L, limit.remainingNanos),
        TimeUnit.NANOSECONDS)
      ()
    }

    private def check(): Unit = {
      isChecked.set(false)
      val limit = guarded
      if (limit != null) {
        if (limit.passed) wake else checkAtEndOf(limit)
      }
    }
  }
}
