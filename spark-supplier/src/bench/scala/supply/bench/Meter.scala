package supply.bench

import java.lang.management.ManagementFactory

import com.sun.management.ThreadMXBean

/** Measures what the calling thread uses from now on. */
private[bench] final class Meter {
  private val allocatedBefore = Meter.allocated
  private val cpuBefore = Meter.threads.getCurrentThreadCpuTime
  private val start = System.nanoTime()

  def measured(elements: Long, bytes: Long): Measured = {
    val nanos = System.nanoTime() - start
    Measured(start, nanos, Meter.threads.getCurrentThreadCpuTime - cpuBefore, elements, bytes)
  }

  def allocatedBytes: Long = Meter.allocated - allocatedBefore
}

private[bench] object Meter {
  private val threads = ManagementFactory.getThreadMXBean.asInstanceOf[ThreadMXBean]

  private def allocated: Long = threads.getThreadAllocatedBytes(Thread.currentThread().getId)
}
