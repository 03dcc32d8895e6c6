package supply.run

import java.util.UUID

import scala.reflect.ClassTag

import org.apache.spark.rdd.RDD
import org.apache.spark.supply.{DriverEndpoint, SchedulerState, SparkInternals}
import org.apache.spark.{FutureAction, SparkContext, SparkException}

import supply.core.{FailureText, SupplierEndedException, SupplyException, Threads}
import supply.plan.{HostNames, Hostfile}
import supply.task.PlacedTask

/**
 * A job with one task for each place, in a job group of its own. It fails with the first cause, or
 * if a place has had no task for `timeout` seconds ([[TaskWatch]]). `data`: what its tasks read, if
 * Spark must compute it first; `answers`: to questions of its tasks.
 */
private[supply] final class PlacedJob(sc: SparkContext, places: Places, timeout: Double,
    description: String, data: Option[RDD[_]] = None,
    answers: PartialFunction[Any, Any] = PartialFunction.empty) {
  private val group = s"supply-${UUID.randomUUID()}"
  private lazy val inFront = data.fold(Set.empty[Int])(SchedulerState.shufflesOf)
  private val watch =
    new TaskWatch(sc, places, timeout, () => SchedulerState.stages(sc, group, inFront), fail)
  @volatile private var firstFailure: Option[SupplyException] = None

  /**
   * Runs `body`, which starts the job and waits for it; each task does its work in its argument.
   * Throws the first cause if it fails.
   */
  def run[A](body: PlacedTask => A): A = {
    val endpoint = new DriverEndpoint(sc, group)(watch.answers.orElse(answers))
    val timer = Threads.repeat("supply-task-watch", PlacedJob.periodMillis)(check())
    try PlacedJob.inGroup(sc, group, description) {
        firstFailure.foreach(throw _)
        body(new PlacedTask(endpoint.calls, places.pauseMillis(timeout)))
      }
    catch { case e: SparkException => throw firstFailure.getOrElse(PlacedJob.causeOf(e)) }
    finally {
      timer.close()
      endpoint.close()
    }
  }

  /** In [[run]]: starts a job in which each place does `work`, and `answered` gets what it returns. */
  def submit[A: ClassTag](task: PlacedTask)(work: Int => A)(
      answered: (Int, A) => Unit): FutureAction[Unit] = {
    val rdd = sc.makeRDD(places.preferred.zipWithIndex.map(_.swap)).map(place => task(work(place)))
    sc.submitJob(rdd, (answer: Iterator[A]) => answer.next(), places.preferred.indices, answered,
      ())
  }

  /** Stops the job, for that reason unless it already has one. */
  def fail(cause: SupplyException): Unit = synchronized {
    if (firstFailure.isEmpty) {
      firstFailure = Some(cause)
      sc.cancelJobGroup(group)
    }
  }

  /** Spark does not cancel jobs that are not submitted yet. */
  private def check(): Unit =
    if (firstFailure.isDefined) sc.cancelJobGroup(group) else watch.check()
}

private[supply] object PlacedJob {
  private val periodMillis = 1000L
  private val ofGroup =
    Seq("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

  /**
   * Runs the jobs of `body` as a group that can be cancelled, in place of any group of the thread. The
   * thread's job tags stay.
   */
  private[run] def inGroup[A](sc: SparkContext, group: String, description: String)(
      body: => A): A = {
    val before = ofGroup.map(name => name -> sc.getLocalProperty(name))
    // The interrupt wakes a task that waits for its rank.
    sc.setJobGroup(group, description, interruptOnCancel = true)
    try body
    catch {
      // When the waiting thread is interrupted, Spark leaves the job running.
      case e: InterruptedException =>
        sc.cancelJobGroup(group)
        throw e
    } finally before.foreach { case (name, value) => sc.setLocalProperty(name, value) }
  }

  /** The SupplyException that a task threw or that a cancelled job stands for, or `e` itself. */
  def causeOf(e: Throwable): Throwable =
    FailureText.causes(e).collectFirst {
      case known: SupplyException => known
      case spark: SparkException if isCancelled(spark.getMessage) =>
        new SupplierEndedException("Spark's job was cancelled before its end")
    }.getOrElse(e)

  private def isCancelled(message: String): Boolean = message match {
    case Cancelled() => true
    case _ => false
  }

  /** As Spark 4 and Spark 3.5 say it, but not of a job that ends with its SparkContext. */
  private val Cancelled =
    """(?s)(?:\[SPARK_JOB_CANCELLED\] )?Job \d+ cancelled (?!because SparkContext).*""".r
}

/**
 * The places of a job: a task each, whose partition is the index. `hosts`: with the names that the
 * executors have which have registered there; `preferred`: where Spark should start each task;
 * `areRanks`: each task feeds a rank, and no node can do the work of another one's tasks.
 */
private[supply] final class Places private (val hosts: Hostfile,
    val preferred: IndexedSeq[Seq[String]], val areRanks: Boolean, val name: Int => String) {
  /** How often in a row a task may land on a wrong node. All tries together take the timeout. */
  def tries(timeout: Double): Int =
    if (areRanks) PlacedTask.Limit
    else math.max(PlacedTask.Limit, timeout * 1000 / PlacedTask.ShortPauseMillis).toInt

  /** How long it stays there each time. */
  def pauseMillis(timeout: Double): Long =
    if (areRanks) (timeout * 1000 / PlacedTask.Limit).toLong else PlacedTask.ShortPauseMillis
}

private[supply] object Places {
  /** The same places, with the names that the executors have which have registered on their hosts. */
  def known(sc: SparkContext, hosts: Hostfile): Hostfile = HostNames.known(hosts, registered(sc))

  /** Places of tasks that feed ranks; `first`: the first rank of each. */
  def ranks(sc: SparkContext, hosts: Hostfile, first: Int => Int): Places =
    of(sc, hosts, areRanks = true, place => s"rank ${first(place)}")

  /** The first rank of each node. */
  def nodes(sc: SparkContext, hosts: Hostfile): Places = {
    val places =
      if (hosts.byHost.isEmpty) hosts.places.take(1) else hosts.byHost.map(_._2.head).toIndexedSeq
    of(sc, Hostfile(places), areRanks = false,
      node =>
        places(node).host.fold("the ranks' node (without hosts, any node)")(host =>
          s"node $host"))
  }

  /** The executors: one may do the work of another. Without any, a task on the first. */
  def executors(sc: SparkContext): Places = {
    val there = SparkInternals.executorSlots(sc).map(SparkInternals.location).toIndexedSeq
    new Places(Hostfile.oneNode(math.max(1, there.size)),
      if (there.isEmpty) Vector(Nil) else there.map(Seq(_)), areRanks = false,
      number => s"executor $number")
  }

  private def registered(sc: SparkContext) = SparkInternals.executorSlots(sc).map(_.host).distinct

  private def of(sc: SparkContext, hosts: Hostfile, areRanks: Boolean,
      name: Int => String): Places = {
    val executors = registered(sc)
    val known = HostNames.known(hosts, executors)
    // Spark compares names as texts, and an executor may have registered with an address.
    val names = known.byHost.map { case (host, places) =>
      host -> (if (executors.contains(host)) Seq(host)
               else host +: executors.filter(places.head.isOn))
    }.toMap
    new Places(known, known.places.map(_.host.toSeq.flatMap(names)), areRanks, name)
  }
}
