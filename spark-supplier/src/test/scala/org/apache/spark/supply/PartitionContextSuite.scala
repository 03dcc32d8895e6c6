package org.apache.spark.supply

import scala.concurrent.{Await, Future}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._

import org.apache.spark.{SparkEnv, TaskContext, TaskKilledException}
import org.apache.spark.memory.{MemoryConsumer, MemoryMode}
import org.apache.spark.rdd.RDD
import org.apache.spark.shuffle.FetchFailedException
import org.apache.spark.storage.RDDBlockId
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.LocalSpark

class PartitionContextSuite extends AnyFunSuite with LocalSpark {
  import PartitionContextSuite._

  /** What `body` makes of the context of a task. */
  private def inTask[A: scala.reflect.ClassTag](body: TaskContext => A): A =
    sc.parallelize(Seq(0), 1).map(_ => body(TaskContext.get())).collect().head

  test("it has the partition's number, and is that of the thread, until it ends") {
    sc.setLocalProperty("of the job", "here")
    val (inside, outside) = inTask { task =>
      val inside = PartitionContext.use(task, 7, 9) { own =>
        Seq(own == TaskContext.get(), own.partitionId() == 7, own.numPartitions() == 9,
          PartitionContext.ofTask(own) == task, own.stageId() == task.stageId(),
          own.taskAttemptId() != task.taskAttemptId(), own.getLocalProperty("of the job") == "here")
      }
      (inside, TaskContext.get() == task)
    }
    assert(inside.forall(identity) && outside)
  }

  test("what listeners, memory and locks of blocks wait for is its end") {
    val cached: RDD[Int] = sc.parallelize(0 until 100, 1).persist()
    assert(cached.count() == 100)
    val id = cached.id
    val order = inTask { task =>
      val order = Seq.newBuilder[String]
      task.addTaskCompletionListener[Unit](_ => order += "task")
      val held = PartitionContext.use(task, 0, 1) { own =>
        own.addTaskCompletionListener[Unit](_ => order += "partition")
        SparkEnv.get.blockManager.get[Int](RDDBlockId(id, 0)).get.data.next()
        val consumer = new Consumer(own)
        assert(consumer.acquireMemory(1 << 20) == 1 << 20)
        SparkEnv.get.memoryManager.executionMemoryUsed
      }
      order += s"$held bytes, then ${SparkEnv.get.memoryManager.executionMemoryUsed}"
      // Waits for the readers of the block.
      val removal = Future(SparkEnv.get.blockManager.removeBlock(RDDBlockId(id, 0)))
      Await.result(removal, 60.seconds)
      order.result()
    }
    assert(order == Seq("partition", s"${1 << 20} bytes, then 0"))
  }

  test("a failure reaches its listeners, and the first one stays") {
    val (heard, thrown, suppressed) = inTask { task =>
      var heard = Seq.empty[String]
      val thrown =
        try PartitionContext.use[Nothing](task, 0, 1) { own =>
            own.addTaskFailureListener { (_, error) =>
              heard :+= s"failed: ${error.getMessage}"
              throw new IllegalStateException("the third")
            }
            own.addTaskCompletionListener[Unit] { context =>
              heard :+= s"completed: ${context.isFailed()}"
              throw new IllegalStateException("the second")
            }
            throw new IllegalArgumentException("the first")
          }
        catch { case e: IllegalArgumentException => e }
      (heard, thrown.getMessage, thrown.getSuppressed.length)
    }
    assert(heard == Seq("failed: the first", "completed: true"))
    assert(thrown == "the first" && suppressed == 2)
  }

  test("its metrics are added to the task's") {
    val (read, peak) = inTask { task =>
      (1 to 3).foreach { partition =>
        PartitionContext.use(task, partition, 4) { own =>
          own.taskMetrics().createTempShuffleReadMetrics().incRecordsRead(10)
          own.taskMetrics().incPeakExecutionMemory(5)
          assert(own.taskMetrics().shuffleReadMetrics.recordsRead == 0)
        }
      }
      (task.taskMetrics().shuffleReadMetrics.recordsRead, task.taskMetrics().peakExecutionMemory)
    }
    assert(read == 30 && peak == 15)
  }

  test("a killed task ends it, and a failed fetch is the task's") {
    // Spark would run a task again and again that nobody has killed but itself.
    assert(sc.defaultParallelism > 0)
    val task = TaskContext.empty()
    try
      PartitionContext.use(task, 0, 1) { own =>
        new FetchFailedException(null, 1, 2L, 3, 4, "lost")
        assert(task.fetchFailed.exists(_.getMessage == "lost"))
        assert(!own.isInterrupted())
        task.markInterrupted("by the test")
        assert(own.isInterrupted() && own.getKillReason().contains("by the test"))
        intercept[TaskKilledException](own.killTaskIfInterrupted())
      }
    finally TaskContext.unset()
  }
}

private object PartitionContextSuite {
  final class Consumer(context: TaskContext)
      extends MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {
    override def spill(size: Long, trigger: MemoryConsumer): Long = 0
  }
}
