package supply.bench

import java.util.concurrent.{CyclicBarrier, TimeUnit}

/** Lets the tasks of a job, threads of one JVM, begin a measurement together. */
private[bench] object StartLine {
  @volatile private var barrier = new CyclicBarrier(1)

  def drawFor(tasks: Int): Unit = barrier = new CyclicBarrier(tasks)

  /** Waits for the others, at most `timeout` seconds. */
  def await(timeout: Double): Unit = {
    barrier.await((timeout * 1e3).toLong, TimeUnit.MILLISECONDS)
    ()
  }
}
