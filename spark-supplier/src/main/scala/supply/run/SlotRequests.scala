package supply.run

import scala.collection.mutable

import org.apache.spark.SparkContext

import supply.core.{Deadline, Threads}

/**
 * Executors that clients wait for. A client asks again and again; when it no longer does, because it
 * has what it needs or has died, the tasks that wait for slots end.
 */
private[supply] object SlotRequests {
  private final val KeptSeconds = 5.0
  private final class Request(val keeper: SlotKeeper, var until: Deadline)

  private val requests = mutable.Map.empty[String, Request]
  private lazy val timer = Threads.scheduler("supply-slot-requests")

  /** The client of that run needs that many tasks at once; 0: no more. */
  def renew(sc: SparkContext, run: String, tasks: Int): Unit = synchronized {
    if (tasks <= 0 || !TaskSlots.areDynamic(sc)) Option(run).foreach(end)
    else {
      val until = new Deadline(KeptSeconds)
      requests.get(run) match {
        case Some(request) => request.until = until
        case None =>
          requests(run) = new Request(new SlotKeeper(sc, tasks, Nil), until)
          check(run)
      }
    }
  }

  private def check(run: String): Unit =
    timer.schedule(
      (() =>
            synchronized(requests.get(run).foreach { request =>
              if (request.until.passed) end(run) else check(run)
            })): Runnable, 1, java.util.concurrent.TimeUnit.SECONDS)

  private def end(run: String): Unit = requests.remove(run).foreach(_.keeper.close())
}
