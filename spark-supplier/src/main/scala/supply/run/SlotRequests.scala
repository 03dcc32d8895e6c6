package supply.run

import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.SparkContext

import supply.core.{Deadline, Threads}

/**
 * Executors that clients wait for, or that a run needs which has begun. The tasks that wait for slots end
 * when the run begins a job, which then takes the slots, and when the run has ended. A run that has no
 * client at the hub, or not yet, must ask again and again.
 */
private[supply] object SlotRequests {
  private final val KeptSeconds = 30.0
  private final val CheckMillis = 100L

  private final class Request(val wanted: (Int, Seq[String]), val keeper: SlotKeeper,
      val mustEnd: () => Boolean) {
    var until = new Deadline(KeptSeconds)
  }

  private val requests = mutable.Map.empty[String, Request]
  private lazy val timer = Threads.scheduler("supply-slot-requests")

  /**
   * The run needs that many tasks at once; 0: no more. hosts: of the tasks; none: any. isOpen: whether the
   * run has a client at the hub.
   */
  def renew(
      sc: SparkContext, run: String, tasks: Int, hosts: Seq[String], isOpen: => Boolean): Unit =
    synchronized {
      requests.get(run).filter(_.wanted == (tasks -> hosts)) match {
        case Some(request) => request.until = new Deadline(KeptSeconds)
        case None =>
          end(run)
          if (tasks > 0 && TaskSlots.areDynamic(sc)) {
            val request = new Request(tasks -> hosts, new SlotKeeper(sc, tasks, hosts),
              () => sc.isStopped || requests(run).until.passed && !isOpen)
            requests(run) = request
            check(run, request)
          }
      }
    }

  /** The run takes its slots now, or needs none any more. */
  def end(run: String): Unit = synchronized(requests.remove(run).foreach(_.keeper.close()))

  /** Until the request ends, or the run has another one, which has a check of its own. */
  private def check(run: String, request: Request): Unit = {
    val check: Runnable = () =>
      synchronized(requests.get(run).filter(_ eq request).foreach { _ =>
        // Spark may stop meanwhile.
        if (Try(request.mustEnd()).getOrElse(true)) end(run) else this.check(run, request)
      })
    timer.schedule(check, CheckMillis, TimeUnit.MILLISECONDS)
    ()
  }
}
