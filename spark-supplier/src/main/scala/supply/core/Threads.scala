package supply.core

import java.util.concurrent.{ScheduledThreadPoolExecutor, TimeUnit}

import scala.concurrent.ExecutionContext
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

/** Where work runs: daemon threads, which do not keep the JVM alive, and threads that are there. */
object Threads {
  private val log = LoggerFactory.getLogger(getClass)

  /** Continues in the thread that completes a future: for very little work. */
  val completing: ExecutionContext = ExecutionContext.fromExecutor(_.run())

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

  /**
   * Runs `work` after `firstMillis`, and again `everyMillis` after each end, even one with an
   * error, which is logged. Closing ends that, and interrupts `work` unless `work` itself closes.
   */
  def repeat(name: String, firstMillis: Long, everyMillis: Long)(work: => Unit): AutoCloseable = {
    val timer = scheduler(name)
    @volatile var worker: Thread = null
    val logged: Runnable = () => {
      worker = Thread.currentThread()
      try work
      catch { case NonFatal(e) => log.warn(s"$name failed, and is tried again", e) }
    }
    timer.scheduleWithFixedDelay(logged, firstMillis, everyMillis, TimeUnit.MILLISECONDS)
    () => if (Thread.currentThread() eq worker) timer.shutdown() else { timer.shutdownNow(); () }
  }
}
