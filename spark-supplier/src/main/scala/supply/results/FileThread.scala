package supply.results

import java.util.concurrent.{Callable, ExecutionException, TimeUnit}

import supply.core.Threads

/**
 * The one thread of this JVM that opens, probes and closes block files. Nobody interrupts it, as
 * Spark interrupts tasks: an interrupt closes a channel. And no two probes meet: when any channel
 * of a file is closed, the JVM drops all its locks on the file.
 */
private[results] object FileThread {
  private val thread = Threads.scheduler("supply-results")

  /** Runs `body` there and waits for it, also if this thread is interrupted: it is short. */
  def run[A](body: => A): A = {
    val work = thread.submit((() => body): Callable[A])
    var result = Option.empty[A]
    var wasInterrupted = false
    try {
      while (result.isEmpty) {
        try result = Some(work.get())
        catch { case _: InterruptedException => wasInterrupted = true }
      }
      result.get
    } catch { case e: ExecutionException => throw e.getCause }
    finally if (wasInterrupted) Thread.currentThread().interrupt()
  }

  /** Runs `body` there periodically, also after it has failed. */
  def repeat(seconds: Long)(body: => Unit): Unit = {
    thread.scheduleWithFixedDelay(
      () => Threads.logging("the check which open results were removed")(body), seconds, seconds,
      TimeUnit.SECONDS)
    ()
  }
}
