package supply.run

import java.util.concurrent.LinkedBlockingQueue

import org.apache.spark.supply.{ScheduledTask, StageState}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{MisplacedException, PairHeldException, SourceException, SupplyException}
import supply.plan.Hostfile
import supply.task.TaskMessage
import supply.testing.LocalSpark

/** What the driver concludes from what Spark's scheduler knows of a job, without a task. */
class TaskWatchSuite extends AnyFunSuite with LocalSpark {
  private val causes = new LinkedBlockingQueue[SupplyException]
  private var stages = Seq.empty[StageState]

  /** The watch of a job of three ranks, for which a rank without a task is late soon. */
  private def watch(): TaskWatch = {
    causes.clear()
    stages = Nil
    new TaskWatch(sc, Places.ranks(sc, Hostfile.oneNode(3), identity), timeout = 0.05, () => stages,
      cause => { causes.add(cause); () })
  }

  /** The watch sees these stages `times` times, longer apart than its limit. Returns what it says. */
  private def cause(watch: TaskWatch, times: Int)(seen: StageState*): Option[String] = {
    stages = seen
    (1 to times).foreach { _ =>
      watch.check()
      Thread.sleep(80)
    }
    Option(causes.poll()).map(_.getMessage)
  }

  /** The task of rank 0 with that number ends. Whether it may be tried again. */
  private def ends(watch: TaskWatch, number: Long, error: SupplyException): Boolean =
    watch.answers(TaskMessage.Ends(7, 0, number, error)).asInstanceOf[Boolean]

  private def task(number: Long, rank: Int) =
    ScheduledTask(number, rank, "driver", "localhost", isSpeculative = false)

  private def ranks(attempt: Int, waiting: Set[Int], done: Set[Int],
      tasks: ScheduledTask*): StageState =
    StageState(7, attempt, isLast = true, tasks.size, done.size, done, waiting, tasks)

  private def shuffle(running: Int, succeeded: Int = 0) =
    StageState(6, 0, isLast = false, running, succeeded)

  test("a rank must be without a task for longer than the limit, and in two checks") {
    val waiting = ranks(0, Set(0, 1, 2), Set.empty, task(0, 0))
    val two = watch()
    assert(cause(two, 2)(waiting).isEmpty)
    assert(cause(two, 1)(waiting).exists(_.startsWith("rank 1 has had no Spark task")))
    val all = watch()
    val running = ranks(0, Set(0, 1, 2), Set.empty, task(0, 0), task(1, 1), task(2, 2))
    assert(cause(all, 5)(running).isEmpty)
    assert(cause(all, 5)().isEmpty)
  }

  test(
    "if the stage is submitted again, a rank misses no task that has succeeded or still runs") {
    val again = watch()
    val old = ranks(0, Set.empty, Set(0), task(1, 1))
    assert(cause(again, 5)(old).isEmpty)
    // The old task still runs; the new stage waits for that rank, too.
    val next = ranks(1, Set(1, 2), Set.empty)
    assert(cause(again, 5)(old, next).exists(_.startsWith("rank 2 has had no Spark task")))
  }

  test("places miss their tasks from the start of the job, but not while a stage in front runs") {
    val watched = watch()
    assert(cause(watched, 5)(shuffle(running = 1)).isEmpty)
    assert(cause(watched, 3)(shuffle(running = 0)).exists(
        _.startsWith("rank 0 has had no Spark task")))
  }

  test("the time of the ranks begins again when tasks in front succeed, however short they are") {
    val watched = watch()
    assert((0 to 9).flatMap(done =>
        cause(watched, 1)(shuffle(running = 0, succeeded = done))).isEmpty)
  }

  test("a rank whose task has succeeded misses none while lost data is computed again") {
    val again = watch()
    assert(cause(again, 1)(ranks(0, Set(1, 2), Set(0), task(1, 1), task(2, 2))).isEmpty)
    assert(cause(again, 3)(shuffle(running = 0)).exists(
        _.startsWith("rank 1 has had no Spark task")))
  }

  test("a task that cannot have its pair stops the job only if no other task of its rank runs") {
    val held = watch()
    def mayTryAgain(number: Long) = ends(held, number, new PairHeldException("it is held"))
    stages = Seq(ranks(0, Set(0), Set(1, 2), task(0, 0), task(1, 0)))
    assert(mayTryAgain(1) && causes.isEmpty)
    stages = Seq(ranks(0, Set(0), Set(1, 2), task(2, 0)))
    assert(!mayTryAgain(2) && causes.poll().getMessage == "it is held")
  }

  test("a task may land on another node nine times in a row, and is then named") {
    val moved = watch()
    def mayMove() = ends(moved, 0, new MisplacedException("it landed elsewhere"))
    assert((1 to 9).forall(_ => mayMove()))
    // A task on the right node in between.
    assert(cause(moved, 1)(ranks(0, Set(0, 1, 2), Set.empty, task(0, 0))).isEmpty)
    assert((1 to 9).forall(_ => mayMove()) && causes.isEmpty)
    assert(!mayMove() && causes.poll().getMessage.startsWith(
      "it landed elsewhere, for the 10th time in a row"))
  }

  test("an error that no retry can mend stops the job, but not that of a speculative copy") {
    val hopeless = watch()
    stages = Seq(ranks(0, Set(0), Set(1, 2), task(0, 0), task(1, 0).copy(isSpeculative = true)))
    assert(!ends(hopeless, 1, new SourceException("no data")) && causes.isEmpty)
    assert(!ends(hopeless, 0, new SourceException("no data")))
    assert(causes.poll().getMessage == "no data")
  }
}
