package supply.run

import java.util.concurrent.Semaphore

import org.apache.spark.SparkException
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.core.{PlacementException, SourceException, SupplierEndedException}
import supply.plan.{Groups, Hostfile, Sharing, Uneven}
import supply.task.SupplySettings
import supply.testing.{Background, LocalSpark}

/** Also if the application's listeners are slow. */
trait JobsThatFailEarly extends LocalSpark { this: AnyFunSuite =>
  import Background.{inBackground, result}

  /** Runs `body` while tasks of another job hold this many cores. */
  protected def whileBusy(cores: Int, description: String)(body: => Unit): Unit = {
    JobsThatFailEarly.begun.drainPermits()
    val blocking = inBackground(PlacedJob.inGroup(sc, "blocking", description) {
      sc.parallelize(0 until cores, cores).foreach { _ =>
        JobsThatFailEarly.begun.release()
        Thread.sleep(Long.MaxValue)
      }
    })
    JobsThatFailEarly.begun.acquire(cores)
    try body
    finally sc.cancelJobGroup("blocking")
    assertThrows[Exception](result(blocking))
    ()
  }

  test("a job that fails before Spark has submitted it does not run to its end") {
    val job =
      new PlacedJob(sc, Places.ranks(sc, Hostfile.oneNode(1), identity), timeout = 20, "failing")
    val running = inBackground(job.run { _ =>
      job.fail(new SourceException("in between"))
      sc.parallelize(0 until 1, 1).foreach(_ => Thread.sleep(Long.MaxValue))
    })
    assert(intercept[SourceException](result(running)).getMessage == "in between")
  }
}

/** How a job with one task for each place ends if its tasks cannot run. */
class PlacedJobSuite extends AnyFunSuite with JobsThatFailEarly {
  import Background.{inBackground, result}

  private def counting(ranks: Int, timeout: Double) = {
    val settings = SupplySettings(ranks, "", "", timeout = timeout, uneven = Uneven.Drop)
    RunPlan(sc, new DatumSource(sc.parallelize(0 until 4, 2).map(SupplyJobSuite.tuple)), settings,
      Hostfile.oneNode(ranks), Groups(Hostfile.oneNode(ranks), Sharing.Off))
  }

  test("counting fails at the time limit if no executor has a free core for its tasks") {
    whileBusy(slots, "occupies all cores") {
      val counted = inBackground(counting(ranks = 1, timeout = 1))
      val message = intercept[PlacementException](result(counted)).getMessage
      assert(message.contains("rank 0 has had no Spark task for 1 s"))
      assert(message.contains("Other jobs hold cores: occupies all cores (stage "))
    }
    assert(counting(ranks = 1, timeout = 20).equalSteps.get.counted == Seq(2, 2))
  }

  test("a job that fails before it starts does not run") {
    val job =
      new PlacedJob(sc, Places.ranks(sc, Hostfile.oneNode(1), identity), timeout = 20, "failing")
    job.fail(new SourceException("too late"))
    assert(intercept[SourceException](
      job.run(_ => sc.parallelize(0 until 4).count())).getMessage == "too late")
  }

  for ((how, cancel) <- Seq[(String, () => Unit)]("all jobs" -> (() => sc.cancelAllJobs()),
      "a tag of the thread" -> (() => sc.cancelJobsWithTag("mine"))))
    test(s"a job that Spark cancels was asked to end: $how") {
      JobsThatFailEarly.begun.drainPermits()
      val running = inBackground {
        sc.addJobTag("mine")
        new PlacedJob(sc, Places.ranks(sc, Hostfile.oneNode(1), identity), timeout = 20,
          "cancelled").run {
          _ =>
            sc.parallelize(0 until 1, 1).foreach { _ =>
              JobsThatFailEarly.begun.release()
              Thread.sleep(Long.MaxValue)
            }
        }
      }
      JobsThatFailEarly.begun.acquire()
      cancel()
      assert(intercept[SupplierEndedException](result(running)).getMessage.contains(
          "was cancelled"))
    }

  test("a job that ends with its SparkContext keeps its error") {
    Seq("Job 0 cancelled because SparkContext was shut down", null).foreach { message =>
      val error = new SparkException(message)
      assert(PlacedJob.causeOf(error) eq error)
    }
  }
}

private object JobsThatFailEarly {
  val begun = new Semaphore(0)
}
