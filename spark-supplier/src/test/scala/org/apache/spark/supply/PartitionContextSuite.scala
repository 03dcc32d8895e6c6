package org.apache.spark.supply

import java.io.Closeable
import java.lang.reflect.{InvocationTargetException, Modifier}

import scala.concurrent.{Await, Future}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._
import scala.language.reflectiveCalls
import scala.util.Try

import org.apache.spark.{SparkEnv, TaskContext, TaskContextImpl, TaskKilledException}
import org.apache.spark.memory.{MemoryConsumer, MemoryMode}
import org.apache.spark.rdd.RDD
import org.apache.spark.shuffle.FetchFailedException
import org.apache.spark.storage.RDDBlockId
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.LocalSpark

class PartitionContextSuite extends AnyFunSuite with LocalSpark {
  import PartitionContextSuite._

  // Spark then reads a cached block only if the task that has written it is known to have succeeded.
  override protected def sparkSettings: Seq[(String, String)] =
    Seq("spark.rdd.cache.visibilityTracking.enabled" -> "true")

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

  test("what a partition has cached is there for the next epoch, and for other jobs") {
    val computed = sc.longAccumulator
    val cached = sc.parallelize(0 until 100, 2).map { n => computed.add(1); n }.persist()
    val all = cached.partitions
    def read(partitions: Int*) = sc.parallelize(Seq(0), 1).map { _ =>
      partitions.map(partition =>
        PartitionContext.use(TaskContext.get(), partition, 2)(own =>
          cached.iterator(all(partition), own).sum)).sum
    }.collect().head
    assert(read(0, 1, 0) == (0 until 100).sum + (0 until 50).sum && computed.value == 100)
    assert(read(0, 1) == (0 until 100).sum && cached.sum() == (0 until 100).sum)
    assert(computed.value == 100)
    // One whose partition fails is not trusted.
    cached.unpersist(blocking = true)
    cached.persist()
    inTask { task =>
      Try(PartitionContext.use[Int](task, 0, 2) { own =>
        cached.iterator(all(0), own).foreach(_ => ())
        throw new IllegalStateException("after it was cached")
      }).isFailure
    }
    assert(read(0) == (0 until 50).sum && computed.value == 200)
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

  /** A method that Spark 3.5 does not have. */
  private def call(context: TaskContext, name: String, arguments: AnyRef*): Any =
    classOf[TaskContext].getMethods.find(_.getName == name).get.invoke(context, arguments: _*)

  private def requireInterruptible(): Unit =
    assume(classOf[TaskContext].getMethods.exists(_.getName == "interruptible"),
      "this Spark interrupts a task at any time")

  test("no interrupt comes while it opens a resource, which is closed with it") {
    requireInterruptible()
    val task = TaskContext.empty()
    var open = Set.empty[String]
    final class Resource(name: String) extends Closeable {
      open += name
      override def close(): Unit = open -= name
    }
    def opened(own: TaskContext, name: String) = call(own, "createResourceUninterruptibly",
      { () =>
        assert(Seq(own, task).forall(call(_, "interruptible") == false))
        new Resource(name)
      }: () => Closeable)
    try {
      PartitionContext.use(task, 0, 2) { own =>
        assert(opened(own, "a").isInstanceOf[Resource] && opened(own, "b") != null)
        assert(Seq(own, task).forall(call(_, "interruptible") == true) && open == Set("a", "b"))
        val failure =
          intercept[InvocationTargetException](call(own, "createResourceUninterruptibly",
              (() => throw new IllegalStateException("no file")): () => Closeable))
        assert(failure.getCause.getMessage == "no file" && call(task, "interruptible") == true)
      }
      assert(open.isEmpty)
      // As Spark kills a task that opens something.
      PartitionContext.use(task, 1, 2) { own =>
        val killed = intercept[InvocationTargetException](call(own, "createResourceUninterruptibly",
            { () =>
              call(own, "pendingInterrupt", None, "by the test")
              task.markInterrupted("by the test")
              new Resource("c")
            }: () => Closeable))
        assert(killed.getCause.isInstanceOf[TaskKilledException] && open == Set("c"))
      }
      assert(open.isEmpty)
    } finally TaskContext.unset()
  }

  // Since Spark 4.3.
  if (classOf[TaskContext].getMethods.exists(_.getName == "addTaskInterruptListener"))
    test("a listener of a kill hears of it in its partition alone, also of one before")(listening())
  else info("skipped: this Spark has no listeners of a kill")

  private def listening(): Unit = {
    val task = TaskContext.empty()
    var heard = Seq.empty[String]
    def listen(own: TaskContext): Unit = {
      val number = own.partitionId()
      own.asInstanceOf[{
          def addTaskInterruptListener(listener: (TaskContext, String) => Unit): TaskContext
        }].addTaskInterruptListener((_, reason) => heard :+= s"$number: $reason")
      ()
    }
    try {
      PartitionContext.use(task, 0, 4)(listen)
      PartitionContext.use(task, 1, 4) { own =>
        listen(own)
        assert(heard.isEmpty)
        task.markInterrupted("killed")
        assert(heard == Seq("1: killed"))
      }
      (2 to 3).foreach(PartitionContext.use(task, _, 4)(listen))
      assert(heard == Seq("1: killed", "2: killed", "3: killed"))
    } finally TaskContext.unset()
  }

  test("each method that Spark's contexts have is the task's, or is the partition's on purpose") {
    val methods = Seq(classOf[TaskContext], classOf[TaskContextImpl]).flatMap(_.getDeclaredMethods)
      .filter { method =>
        val is = method.getModifiers
        !(Modifier.isStatic(is) || Modifier.isPrivate(is) || Modifier.isFinal(
          is) || method.isSynthetic)
      }.map(_.getName).filterNot(name => name.contains("$") || ofLogging(name)).toSet
    val forwarded = classOf[PartitionContext].getDeclaredMethods.map(_.getName).toSet
    assert(methods -- forwarded -- ofPartition == Set.empty)
    assert((ofPartition & forwarded) == Set.empty)
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
  /**
   * What a partition has of its own: its number, what is freed at its end, and what it gets with the task's values. Who
   * listens for a sent status is the writer of a shuffle, in a task of its own.
   */
  val ofPartition: Set[String] = Set("stageId", "stageAttemptNumber", "partitionId",
    "taskAttemptId", "attemptNumber",
    "numPartitions", "taskMemoryManager", "taskMetrics", "cpus", "cpuAmount", "resources",
    "resourcesJMap", "isCompleted", "isFailed",
    "addTaskCompletionListener", "addTaskFailureListener", "runTaskWithListeners", "markTaskFailed",
    "markTaskCompleted",
    "getLocalProperty", "getLocalProperties", "getMetricsSources", "registerAccumulator",
    "fetchFailed", "markInterrupted", "addTaskInterruptListener", "addTaskPreCompletionListener",
    "addPostStatusUpdateListener", "invokePostStatusUpdateListeners", "getTaskFailure")

  private val logging: Set[String] =
    classOf[org.apache.spark.internal.Logging].getMethods.map(_.getName).toSet
  def ofLogging(name: String): Boolean = logging(name)

  final class Consumer(context: TaskContext)
      extends MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {
    override def spill(size: Long, trigger: MemoryConsumer): Long = 0
  }
}
