package supply.api

import java.util.concurrent.{CountDownLatch, LinkedBlockingQueue}
import java.util.{Arrays, Properties}

import org.apache.spark.{SparkException, TaskContext, TaskKilledException}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.PlacementException
import supply.run.Hubs
import supply.testing.Background.{inBackground, result}
import supply.testing.LocalSpark

class StartersSuite extends AnyFunSuite with LocalSpark {
  import StartersSuite._

  test("a task that starts ranks on another host than theirs says so, and the driver knows it") {
    Seq("first", "second").foreach(Hubs.open(sc, _, new Array[Byte](32)))
    val failure =
      intercept[SparkException](Starters.of(sc, "first", Arrays.asList("node-9")).collect())
    assert(failure.getMessage.contains(
        "the task that starts the ranks of node-9 landed on"))
    assert(Seq("first", "second", "unknown").map(Starters.areMisplaced) == Seq(true, false, false))
  }

  /** What a later attempt of a running task gets from `starter`, as a copy on another host is one. */
  private def copied(starter: Starter, task: TaskContext, partition: Int): Array[Byte] = {
    val context =
      Class.forName("org.apache.spark.TaskContextImpl").getConstructors.head.newInstance(
        Int.box(task.stageId()), Int.box(0), Int.box(partition), Long.box(1L << 40), Int.box(1),
        Int.box(2), null, new Properties, null, null, Int.box(1), Map.empty)
    val ofThread = Class.forName("org.apache.spark.TaskContext$").getField("MODULE$").get(null)
    def set(value: Any) = ofThread.getClass.getMethods.find(_.getName == "setTaskContext").get
      .invoke(ofThread, value.asInstanceOf[AnyRef])
    set(context)
    try starter("node-9")
    finally set(null)
  }

  test("a speculative copy of a starter ends without a failure, and a retry with one") {
    Hubs.open(sc, "copied", new Array[Byte](32))
    val starter = Starters.begin(sc, "copied")
    val running = inBackground(sc.parallelize(Seq(0), 1).map { _ =>
      contexts.add(TaskContext.get())
      ends.await()
    }.count())
    val task = contexts.take()
    try {
      (1 to 2).foreach(_ => intercept[TaskKilledException](copied(starter, task, partition = 0)))
      assert(intercept[PlacementException](copied(starter, task, partition = 1)).getMessage ==
        "the task that starts the ranks of node-9 runs already, or has failed, and cannot be retried")
    } finally ends.countDown()
    result(running)
    intercept[PlacementException](copied(starter, task, partition = 0))
    assert(!Starters.areMisplaced("copied"))
  }
}

private object StartersSuite {
  val contexts = new LinkedBlockingQueue[TaskContext]
  val ends = new CountDownLatch(1)
}
