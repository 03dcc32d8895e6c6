package supply.run

import scala.util.Using

import org.apache.spark.{SparkContext, TaskContext}

/**
 * Holds task slots by tasks that only wait, `tasks` in all, if possible on `hosts`. With dynamic
 * allocation, Spark asks for executors while tasks wait for slots, and keeps those that have tasks.
 */
private[supply] final class SlotKeeper(sc: SparkContext, val tasks: Int, val hosts: Seq[String])
    extends AutoCloseable {
  private val job =
    LocalProperty(sc, SlotKeeper.Description, SlotKeeper.Name)(
      sc.submitJob(
        sc.makeRDD(
          Seq.tabulate(tasks)(task => task -> hosts.drop(task % math.max(1, hosts.size)).take(1))),
        SlotKeeper.waitForEnd(_: Iterator[Int]),
        0 until tasks,
        (_: Int, _: Unit) => (), ()))

  /** Gives the slots back. */
  override def close(): Unit = job.cancel()
}

/** Those of a run. Its lock is taken before those of Spark. */
private[run] final class KeptSlots extends AutoCloseable {
  private var keeper = Option.empty[SlotKeeper]

  /** tasks, hosts: as of SlotKeeper. 0 tasks: none. */
  def keep(sc: SparkContext, tasks: Int, hosts: Seq[String]): Unit = synchronized {
    if (!keeper.exists(kept => kept.tasks == tasks && kept.hosts == hosts)) {
      close()
      if (tasks > 0 && TaskSlots.areDynamic(sc)) keeper = Some(new SlotKeeper(sc, tasks, hosts))
    }
  }

  override def close(): Unit = synchronized {
    keeper.foreach(_.close())
    keeper = None
  }
}

private[supply] object SlotKeeper {
  /** In Spark's UI. */
  final val Name = "supply: waiting for executors"

  private val Description = "spark.job.description"
  private val PollMillis = 50L

  /** Runs `body` while `tasks` slots are asked for, if Spark starts executors only for tasks. */
  def during[A](sc: SparkContext, tasks: Int, hosts: Seq[String] = Nil)(body: => A): A =
    Using.resource(new KeptSlots) { slots =>
      slots.keep(sc, tasks, hosts)
      body
    }

  private def waitForEnd(tasks: Iterator[Int]): Unit =
    tasks.foreach(_ => while (!TaskContext.get().isInterrupted()) Thread.sleep(PollMillis))
}
