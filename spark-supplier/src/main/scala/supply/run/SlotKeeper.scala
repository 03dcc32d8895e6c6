package supply.run

import java.util.UUID

import scala.util.Using

import org.apache.spark.{FutureAction, SparkContext}

/**
 * Holds task slots of a run by tasks that only wait. With dynamic allocation, Spark asks for executors
 * while tasks wait for slots, and keeps those that have tasks. Its lock is taken before those of Spark.
 */
private[supply] final class SlotKeeper extends AutoCloseable {
  private var kept = Option.empty[(Int, Seq[String], FutureAction[Unit])]

  /** Holds `tasks` slots, if possible on `hosts`, if Spark starts executors only for tasks. */
  def keep(sc: SparkContext, tasks: Int, hosts: Seq[String]): Unit = synchronized {
    if (!kept.exists(before => before._1 == tasks && before._2 == hosts)) {
      close()
      if (tasks > 0 && TaskSlots.areDynamic(sc))
        kept = Some((tasks, hosts, SlotKeeper.hold(sc, tasks, hosts)))
    }
  }

  /** Gives the slots back. */
  override def close(): Unit = synchronized {
    kept.foreach(_._3.cancel())
    kept = None
  }
}

private[supply] object SlotKeeper {
  /** In Spark's UI. */
  final val Name = "supply: waiting for executors"

  /** Runs `body` while `tasks` slots are asked for. */
  def during[A](sc: SparkContext, tasks: Int, hosts: Seq[String] = Nil)(body: => A): A =
    Using.resource(new SlotKeeper) { slots =>
      slots.keep(sc, tasks, hosts)
      body
    }

  private def hold(sc: SparkContext, tasks: Int, hosts: Seq[String]): FutureAction[Unit] =
    PlacedJob.inGroup(sc, s"supply-${UUID.randomUUID()}", Name)(
      sc.submitJob(
        sc.makeRDD(
          Seq.tabulate(tasks)(task => task -> hosts.drop(task % math.max(1, hosts.size)).take(1))),
        (_: Iterator[Int]) => Thread.sleep(Long.MaxValue),
        0 until tasks,
        (_: Int, _: Unit) => (), ()))
}
