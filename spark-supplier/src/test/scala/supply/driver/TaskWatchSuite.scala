package supply.driver

import java.util.Properties
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import scala.util.Using

import org.apache.spark.{Resubmitted, Success, TaskEndReason, TaskKilled}
import org.apache.spark.scheduler.{SparkListenerJobStart, SparkListenerStageSubmitted, SparkListenerTaskEnd, SparkListenerTaskStart, StageInfo}
import org.apache.spark.scheduler.{TaskInfo, TaskLocality}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{PairHeldException, SupplyException}
import supply.plan.Hostfile
import supply.testing.LocalSpark

/** What the driver concludes from the events of a job, without a task. */
class TaskWatchSuite extends AnyFunSuite with LocalSpark {
  private val stage = new StageInfo(7, 0, "", 3, Seq.empty, Seq.empty, "", resourceProfileId = 0)

  /**
   * The watch of a job of three ranks whose last stage is submitted. `timeout` is short, so that a
   * rank without a task is late soon; `stopped` are the tasks that cannot have their pairs.
   */
  private def watching(stopped: Set[Long] = Set.empty, inFront: Seq[StageInfo] = Nil)(
      body: (TaskWatch, LinkedBlockingQueue[SupplyException]) => Unit): Unit = {
    val causes = new LinkedBlockingQueue[SupplyException]
    Using.resource(new TaskWatch(sc, "job", WatchedPlaces.ranks(Hostfile.oneNode(3)),
        timeout = 0.01,
        cause => { causes.add(cause); () },
        task => if (stopped(task)) Some(new PairHeldException("it is held")) else None)) { watch =>
      val properties = new Properties
      properties.setProperty("spark.jobGroup.id", "job")
      watch.onJobStart(SparkListenerJobStart(0, 0, inFront :+ stage, properties))
      body(watch, causes)
    }
  }

  private def task(number: Long, rank: Int) =
    new TaskInfo(number, rank, 0, rank, 0, "driver", "localhost", TaskLocality.ANY, false)

  private def start(
      watch: TaskWatch, number: Long, rank: Int, of: StageInfo = stage): Unit =
    watch.onTaskStart(SparkListenerTaskStart(of.stageId, 0, task(number, rank)))

  private def end(watch: TaskWatch, number: Long, rank: Int, reason: TaskEndReason,
      of: StageInfo = stage): Unit =
    watch.onTaskEnd(
      SparkListenerTaskEnd(of.stageId, 0, "Task", reason, task(number, rank), null, null))

  test(
    "if the stage is submitted again, a rank misses no task that has succeeded or still runs") {
    watching() { (watch, causes) =>
      start(watch, 0, rank = 0)
      start(watch, 1, rank = 1)
      start(watch, 2, rank = 2)
      end(watch, 0, rank = 0, Success)
      end(watch, 2, rank = 2, TaskKilled("lost"))
      watch.onStageSubmitted(SparkListenerStageSubmitted(stage))
      assert(causes.poll(30, TimeUnit.SECONDS).getMessage.contains("rank 2 has had no Spark task"))
    }
  }

  private val shuffle = new StageInfo(6, 0, "", 2, Seq.empty, Seq.empty, "", resourceProfileId = 0)

  test("places miss their tasks from the start of the job, but not while a stage in front runs") {
    watching(inFront = Seq(shuffle)) { (watch, causes) =>
      start(watch, 0, rank = 0, of = shuffle)
      assert(causes.poll(3, TimeUnit.SECONDS) == null)
      end(watch, 0, rank = 0, TaskKilled("lost"), of = shuffle)
      assert(causes.poll(30, TimeUnit.SECONDS).getMessage.contains("has had no Spark task"))
    }
  }

  test("a finished task that Spark submits again is not one that ends twice") {
    watching(inFront = Seq(shuffle)) { (watch, causes) =>
      start(watch, 0, rank = 0, of = shuffle)
      start(watch, 1, rank = 1, of = shuffle)
      end(watch, 0, rank = 0, Success, of = shuffle)
      end(watch, 0, rank = 0, Resubmitted, of = shuffle)
      assert(causes.poll(3, TimeUnit.SECONDS) == null)
      end(watch, 1, rank = 1, Success, of = shuffle)
      end(watch, 1, rank = 1, Resubmitted, of = shuffle)
      assert(causes.poll(30, TimeUnit.SECONDS).getMessage.contains("has had no Spark task"))
    }
  }

  test("a copy that is killed after the success of its rank's task leaves nothing missing") {
    watching() { (watch, causes) =>
      start(watch, 0, rank = 0)
      start(watch, 1, rank = 0)
      end(watch, 0, rank = 0, Success)
      end(watch, 1, rank = 0, TaskKilled("another attempt succeeded"))
      start(watch, 2, rank = 1)
      end(watch, 2, rank = 1, TaskKilled("lost"))
      assert(causes.poll(30, TimeUnit.SECONDS).getMessage.contains("rank 1 has had no Spark task"))
    }
  }

  test("a task that cannot have its pair stops the job only if no other task of its rank runs") {
    watching(stopped = Set(1, 2)) { (watch, causes) =>
      start(watch, 0, rank = 0)
      start(watch, 1, rank = 0)
      end(watch, 1, rank = 0, TaskKilled(""))
      assert(causes.isEmpty)
      start(watch, 2, rank = 0)
      end(watch, 0, rank = 0, TaskKilled("lost"))
      end(watch, 2, rank = 0, TaskKilled(""))
      assert(causes.poll(30, TimeUnit.SECONDS).getMessage == "it is held")
    }
  }
}
