package org.apache.spark.supply

import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, MemoryMode}

/**
 * Heap that a task holds for a while, and cannot spill. Spark's operators spill for it, or leave it free.
 *
 * Public API: `TaskContext` does not show the memory of its task.
 */
final class HeldMemory(context: TaskContext)
    extends MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {
  /** Asking takes a lock. */
  private final val Step = 1L << 20

  /** Holds that number of bytes in all. False: Spark has not got them. */
  def hold(bytes: Long): Boolean = {
    if (bytes > getUsed) acquireMemory(math.max(bytes - getUsed, Step))
    bytes <= getUsed
  }

  def release(): Unit = freeMemory(getUsed)

  override def spill(size: Long, trigger: MemoryConsumer): Long = 0
}
