package supply.core

import java.util.concurrent.{ScheduledThreadPoolExecutor, TimeUnit}

import scala.concurrent.ExecutionContext

import org.slf4j.LoggerFactory

/** Where work runs: daemon threads, which do not keep the JVM alive, and threads that are there. */
private[supply] object Threads {
  private val log = LoggerFactory.getLogger(getClass)

  /** Continues in the thread that completes a future: for very little work. */
  val completing: ExecutionContext = ExecutionContext.fromExecutor(_.run())

  /** An interrupt comes after `body`: it would close the files that `body` uses. */
  def uninterrupted[A](body: => A): A = {
    val interrupted = Thread.interrupted()
    try body
    finally if (interrupted) Thread.currentThread().interrupt()
  }

  /** One daemon thread, started with the first work. */
  def scheduler(name: String): ScheduledThreadPoolExecutor = {
    val scheduler = new ScheduledThreadPoolExecutor(1,
      { (work: Runnable) =>
        val thread = new Thread(work, name)
        thread.setDaemon(true)
        thread
      })
    scheduler.setRemoveOnCancelPolicy(true)
    scheduler
  }

  /** Logs any error: an executor does not repeat work that has thrown one, not even a fatal one. */
  def logging(name: String)(work: => Unit): Unit =
    try work
    catch {
      case _: InterruptedException => () // It is being closed.
      case e: Throwable => log.warn(s"$name failed, and is tried again", e)
    }

  /**
   * Runs `work` after `everyMillis`, and again that long after each end, even one with an error,
   * which is logged. Closing ends that, and interrupts `work` unless `work` itself closes.
   */
  def repeat(name: String, everyMillis: Long)(work: => Unit): AutoCloseable = {
    val timer = scheduler(name)
    @volatile var worker: Thread = null
    val logged: Runnable = () => {
      worker = Thread.currentThread()
      logging(name)(work)
    }
    timer.scheduleWithFixedDelay(logged, everyMillis, everyMillis, TimeUnit.MILLISECONDS)
    () => if (Thread.currentThread() eq worker) timer.shutdown() else { timer.shutdownNow(); () }
  }
}
