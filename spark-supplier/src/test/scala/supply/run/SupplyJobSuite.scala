package supply.run

import java.nio.file.Files
import java.util.PriorityQueue
import java.util.concurrent.{Semaphore, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import org.apache.spark.{HashPartitioner, TaskContext}
import org.apache.spark.storage.StorageLevel
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.core.{ConfigException, FailureText, SourceException}
import supply.lmdb.Datum
import supply.plan.{Shuffle, Uneven}
import supply.task.{HeapErrors, SupplySettings}
import supply.testing.{Background, TemporaryFolder, TestRank}

/** Whole runs inside this JVM with real ranks: what they get, and what a failure means for them. */
class SupplyJobSuite extends AnyFunSuite with RunsWithRanks {
  import Background.{inBackground, result}
  import SupplyJobSuite.tuple

  // A task that fails is tried again, as on a cluster.
  override protected def master: String = "local[3,4]"

  /** (epoch, partition, first element, elements) of the blocks that a rank has seen. */
  private def blocks(
      seen: Seq[String]): Seq[(Int, Int, Int, Int)] = seen.filter(_.startsWith("OK ")).map { line =>
    val words = line.split(' ').tail.map(_.toInt)
    (words(1), words(2), words(3), words(4))
  }

  /** Every element of every partition exactly once in an epoch. */
  private def assertOnce(seen: Seq[Seq[String]], sizes: Seq[Int], epochs: Int): Unit =
    for (epoch <- 0 until epochs) {
      val elements = seen.flatMap(blocks).filter(_._1 == epoch)
        .flatMap { case (_, partition, first, count) =>
          (first until first + count).map(partition -> _)
        }
      val expected = sizes.zipWithIndex.flatMap { case (size, partition) =>
        (0 until size).map(partition -> _)
      }
      assert(elements.sorted == expected.sorted, s"epoch $epoch")
    }

  test(
    "an RDD is supplied once an epoch, in another order each epoch, the same again for the same seed") {
    val rdd = sc.parallelize(0 until 40, 8).map(tuple)
    def run(seed: Long) = {
      val (seen, outcome) = supply(2, epochs = 3, seed = seed)(new DatumSource(rdd))
      assert(outcome.toOption.get.map(_.elements) == Seq(60, 60))
      assertOnce(seen, Seq.fill(8)(5), epochs = 3)
      assert(seen.forall(_.last == "END_OF_DATA") && seen.forall(
        _.count(_.startsWith("END_OF_EPOCH")) == 3))
      seen.map(blocks)
    }
    val first = run(seed = 1)
    assert(run(seed = 1) == first)
    assert(run(seed = 2) != first)
    assert(first.head.filter(_._1 == 0).map(_._2) != first.head.filter(_._1 == 1).map(_._2))
  }

  test(
    "a partition that is larger than the heap is named, also with one order and while it is counted") {
    def source = new DatumSource(sc.parallelize(0 until 40, 4).map { i =>
      if (i % 10 == 9) throw new OutOfMemoryError("Java heap space")
      tuple(i)
    })
    def outcomes(uneven: Uneven)(more: SupplySettings => SupplySettings) = {
      val (seen, outcome) = supply(2, ringBytes = 4 * 4096, uneven = uneven, more = more)(source)
      val text = FailureText.of(outcome.left.toOption.get)
      assert(text.matches("(?s).*partition \\d does not fit into the executor's heap of.*"))
      seen.map(_.last)
    }
    Seq(outcomes(Uneven.Keep)(identity),
      outcomes(Uneven.Keep)(_.copy(globalBatch = Some(4), shuffle = Shuffle.Off))).flatten.foreach(
      last => assert(last.contains("does not fit into the executor's heap")))
    outcomes(Uneven.Pad)(identity)
  }

  test("memory that is not the heap's is named as what it is") {
    def text(jvm: String) =
      intercept[SourceException](HeapErrors.naming(3)(throw new OutOfMemoryError(jvm))).getMessage
    Seq("Java heap space", "GC overhead limit exceeded", "Unable to acquire 65536 bytes of memory")
      .foreach(jvm =>
        assert(text(jvm).startsWith("partition 3 does not fit into the executor's heap")))
    Seq("unable to create native thread: possibly out of memory or process/resource limits reached",
      "unable to create new native thread").foreach { jvm =>
      assert(text(jvm).startsWith("partition 3: the executor cannot start another thread"))
      assert(text(jvm).contains("ulimit -u") && !text(jvm).contains("heap"))
    }
    Seq("Direct buffer memory",
      "Cannot reserve 65536 bytes of direct buffer memory (allocated: 1, limit: 2)",
      "failed to allocate 16777216 byte(s) of direct memory (used: 1, max: 2)").foreach { jvm =>
      assert(text(jvm).startsWith("partition 3 does not fit into the executor's memory outside"))
      assert(text(jvm).contains("-XX:MaxDirectMemorySize") && text(jvm).contains(jvm))
    }
    Seq("Metaspace", "Compressed class space").foreach(jvm =>
      assert(text(jvm).startsWith(s"partition 3: the executor's JVM is out of memory ($jvm)")))
  }

  test("with equal steps the ranks have the same number of blocks in each epoch, all of one size") {
    // Twelve, eight and seven elements a partition; rank 0 has two of the three.
    val (begun, ended) = (sc.longAccumulator, sc.longAccumulator)
    val rdd = sc.parallelize(0 until 27, 3).mapPartitionsWithIndex { (partition, _) =>
      begun.add(1)
      TaskContext.get().addTaskCompletionListener[Unit](_ => ended.add(1))
      assert(TaskContext.getPartitionId() == partition)
      Iterator.range(0, Seq(12, 8, 7)(partition)).map(tuple)
    }
    Seq(Uneven.Drop -> 2, Uneven.Pad -> 5).foreach { case (uneven, steps) =>
      val (seen, outcome) =
        supply(2, epochs = 3, blockElements = Some(4), uneven = uneven)(new DatumSource(rdd))
      assert(outcome.toOption.get.map(_.elements) == Seq.fill(2)(3L * steps * 4))
      seen.foreach { rank =>
        assert((0 until 3).forall(epoch => blocks(rank).count(_._1 == epoch) == steps))
        assert(blocks(rank).forall(_._4 == 4))
      }
      // Within an epoch no place comes twice, even if elements do.
      assert(seen.flatMap(blocks).distinct.size == 2 * 3 * steps)
    }
    assert(begun.value > 6 && ended.value == begun.value)
  }

  test("a block that is full before it is a step: the message says what to set") {
    val rdd = sc.parallelize(0 until 400, 2).map(tuple)
    val (seen, outcome) =
      supply(2, blockElements = Some(200), uneven = Uneven.Drop)(new DatumSource(rdd))
    val message = outcome.swap.toOption.get.getMessage
    assert(message.contains("each must have 200") && message.contains("set a larger block="))
    assert(seen.forall(_.last.startsWith("ERROR SUPPLY_ERROR_SPARK")))
  }

  test("the largest number of epochs is no problem: a rank that has had enough aborts") {
    val rdd = sc.parallelize(0 until 4, 2).map(tuple)
    val (_, outcome) = supply(1, epochs = Int.MaxValue,
      take = rank => Seq(rank("next"), rank("abort it has had enough")))(new DatumSource(rdd))
    assert(outcome.swap.toOption.get.getMessage.contains("it has had enough"))
  }

  /** The error of a run with this option, which the rank of this node gets, too. */
  private def refused(option: (String, String), more: (String, String)*): ConfigException =
    TestRank.opened(1) { (files, ranks) =>
      val options = RunOptions.parse(Map("ranks" -> "1", "mapped-files" -> files.mappedFiles,
        "named-pipes" -> files.namedPipes, option) ++ more)
      val error = intercept[ConfigException](SupplyJob.run(sc, options)(_ => fail("opened")))
      assert(ranks.head("next") == s"ERROR SUPPLY_ERROR_SPARK ${error.getMessage}")
      error
    }

  test(
    "a wrong value of an option reaches the ranks, also of other nodes and with a wrong host file") {
    Seq("1e10", "Infinity").foreach(timeout =>
      assert(refused("timeout" -> timeout).getMessage.startsWith("--timeout is ")))
    TemporaryFolder { folder =>
      val here = sc.getConf.get("spark.driver.host")
      val hosts = Files.writeString(folder.resolve("hosts"), s"$here\nelsewhere.test\n").toString
      val errors = Seq(Nil, Seq("hosts" -> "/nowhere"), Seq("ranks" -> "2", "hosts" -> hosts))
        .map(refused("shuffle" -> "elemnts", _: _*))
      errors.foreach(error => assert(error.getMessage.startsWith("--shuffle is 'elemnts'")))
      assert(errors.last.getSuppressed.exists(_.getMessage.endsWith("the nodes of ranks 1")))
    }
  }

  test("a run that is interrupted while it counts stops the counting, too") {
    val running = Thread.currentThread()
    val (seen, outcome) = whileItCounts(running.interrupt())
    assert(outcome.swap.toOption.get.isInstanceOf[InterruptedException] && seen.head.last.contains(
      "was interrupted before every rank had all its data"))
  }

  test("a JVM that is asked to end before the job has begun tells the ranks first") {
    val (seen, outcome) = whileItCounts(askToEnd())
    val message = outcome.swap.toOption.get.getMessage
    assert(message.contains("the Supplier was asked to end") && seen.head.last.contains(message))
  }

  /** Runs a job whose counting ends only if something stops it. */
  private def whileItCounts(act: => Unit) = {
    Seq(SupplyJobSuite.begun, SupplyJobSuite.interrupted).foreach(_.drainPermits())
    val rdd = sc.parallelize(0 until 4, 2).map { i =>
      SupplyJobSuite.begun.release()
      try Thread.sleep(60000)
      catch { case e: InterruptedException => SupplyJobSuite.interrupted.release(); throw e }
      tuple(i)
    }
    val acting = inBackground { assert(SupplyJobSuite.begun.tryAcquire(30, TimeUnit.SECONDS)); act }
    val outcome = supply(1, uneven = Uneven.Drop)(new DatumSource(rdd))
    result(acting)
    assert(SupplyJobSuite.interrupted.tryAcquire(30, TimeUnit.SECONDS))
    outcome
  }

  /** Runs the shutdown hooks that a JVM runs first: ours come before all others of Spark. */
  private def askToEnd(): Unit = {
    def call(target: Any, name: String): Any = {
      val method = target.getClass.getDeclaredMethod(name)
      method.setAccessible(true)
      method.invoke(target)
    }
    val manager =
      Class.forName("org.apache.spark.util.ShutdownHookManager$").getField("MODULE$").get(null)
    val hooks = call(call(manager, "shutdownHooks"), "hooks")
      .asInstanceOf[PriorityQueue[Comparable[Any]]]
    val first = hooks.peek()
    // A run of another test may still look for its ranks.
    hooks.asScala.toSeq.filter(_.compareTo(first) == 0).foreach(call(_, "run"))
  }

  test("a partition that has fewer elements than were counted is an error") {
    SupplyJobSuite.countings.set(2)
    val rdd = sc.parallelize(0 until 20, 2).mapPartitions { numbers =>
      val all = numbers.map(tuple)
      if (SupplyJobSuite.countings.getAndDecrement() > 0) all else all.drop(1)
    }
    val message =
      supply(2, uneven = Uneven.Pad)(new DatumSource(rdd))._2.swap.toOption.get.getMessage
    assert(message.contains("had 10 elements when they were counted"))
  }

  test("resident blocks come in the order of each epoch, like others") {
    val rdd = sc.parallelize(0 until 40, 8).map(tuple)
    def run(resident: Boolean) =
      supply(3, epochs = 4, seed = 1, resident = resident, ringBytes = 4 * 4096)(
        new DatumSource(rdd))._1.map(blocks)
    val seen = run(resident = true)
    assert(seen.flatten.size == 4 * 8 * 2)
    assert(seen == run(resident = false))
  }

  test("a rank without partitions gets the ends of the epochs and of the data") {
    val (seen, _) = supply(3, epochs = 2)(new DatumSource(sc.parallelize(0 until 4, 2).map(tuple)))
    assert(seen(2) == Seq("END_OF_EPOCH 0", "END_OF_EPOCH 1", "END_OF_DATA"))
    assertOnce(seen, Seq(2, 2), epochs = 2)
  }

  test(
    "Spark retries a task that fails in a partition, and the rank gets every element once") {
    // The partitions travel in the task, and by broadcast.
    Seq(0, 200000).foreach { bytes =>
      SupplyJobSuite.failures.set(2)
      val elements = sc.parallelize((0 until 40).map(_ -> new Array[Byte](bytes)), 4)
      val rdd =
        elements.map(_._1).map(tuple).mapPartitionsWithIndex { (partition, tuples) =>
          tuples.zipWithIndex.map { case (t, i) =>
            if (partition == 2 && i == 7 && SupplyJobSuite.failures.getAndDecrement() > 0)
              throw new IllegalStateException("once more")
            t
          }
        }
      val (seen, outcome) = supply(2, epochs = 2)(new DatumSource(rdd))
      assert(outcome.toOption.get.map(_.elements) == Seq(40, 40))
      assertOnce(seen, Seq.fill(4)(10), epochs = 2)
    }
  }

  test("an RDD whose elements may be others when it is computed again is refused") {
    val shuffled = sc.parallelize(0 until 40, 4).groupBy(_ % 7).values.map(_.head)
    val (seen, outcome) = supply(2)(new DatumSource(shuffled.repartition(4).map(tuple)))
    val message = outcome.swap.toOption.get.getMessage
    assert(message.contains("Spark may compute other rows each time"))
    assert(seen.forall(_.last.contains(message)))
  }

  test(
    "a task does not resume in the middle of a partition whose elements have no certain order") {
    val (seen, outcome) = failing(7)
    val message = outcome.swap.toOption.get.getMessage
    assert(message.contains("cannot resume after element 6 of partition 1"))
    assert(seen.head.last.contains(message))
  }

  test("a task resumes between two partitions whose elements have no certain order") {
    val (seen, outcome) = failing(0)
    assert(outcome.toOption.get.map(_.elements) == Seq(20))
    assertOnce(seen, Seq(10, 10), epochs = 1)
  }

  /** Supplies two partitions of a shuffle; the task fails once, at element `at` of the second. */
  private def failing(at: Int) = {
    SupplyJobSuite.failures.set(1)
    val shuffled = sc.parallelize(0 until 20, 2).map(i => i -> i).partitionBy(
      new HashPartitioner(2)).values.map(tuple)
    val rdd = shuffled.mapPartitionsWithIndex { (partition, tuples) =>
      tuples.zipWithIndex.map { case (t, i) =>
        if (partition == 1 && i == at && SupplyJobSuite.failures.getAndDecrement() > 0)
          throw new IllegalStateException("once more")
        t
      }
    }
    supply(1, shuffle = Shuffle.Off)(new DatumSource(rdd))
  }

  test("when Spark fails, every rank gets the cause") {
    val rdd = sc.parallelize(0 until 40, 4).map(tuple).map { t =>
      if (t._1 == "00000012") throw new IllegalStateException("element 12 is cursed")
      // The other rank's task is in the middle of its data when the first one fails.
      if (t._1 == "00000005") Thread.sleep(30000)
      t
    }
    val (seen, outcome) = supply(2)(new DatumSource(rdd))
    assert(outcome.swap.toOption.get.toString.contains("element 12 is cursed"))
    assert(seen.forall(_.last.startsWith("ERROR SUPPLY_ERROR_SPARK")))
    assert(seen.forall(_.last.contains("element 12 is cursed")))
  }

  test("waiting ranks are told of a source that cannot be opened") {
    val (seen, outcome) = supply(2)(throw new SourceException("there is no such source"))
    assert(outcome.swap.toOption.get.getMessage == "there is no such source")
    assert(seen.forall(_ == Seq("ERROR SUPPLY_ERROR_SPARK there is no such source")))
  }

  test("fewer task slots than ranks is an error at the start, on both sides") {
    val (seen, outcome) = supply(4)(new DatumSource(sc.parallelize(0 until 4, 4).map(tuple)))
    val message = outcome.swap.toOption.get.getMessage
    assert(message.contains("4 ranks need 4 tasks at once") && message.contains("slots for 3"))
    assert(seen.forall(_.last.contains(message)))
  }

  test("elements persisted in memory and on disk are supplied in every epoch") {
    Seq(StorageLevel.MEMORY_ONLY, StorageLevel.DISK_ONLY,
      StorageLevel.MEMORY_AND_DISK_SER).foreach { level =>
      val rdd = sc.parallelize(0 until 30, 5).map(tuple).persist(level)
      try assertOnce(supply(2, epochs = 2)(new DatumSource(rdd))._1, Seq.fill(5)(6), epochs = 2)
      finally rdd.unpersist(blocking = true)
    }
  }
}

object SupplyJobSuite {
  def tuple(i: Int): Datum.Tuple =
    (f"$i%08d", (i % 10).toString, 1, 1, 8, false, Array.fill(8)(i.toByte))

  val failures = new AtomicInteger
  val countings = new AtomicInteger
  val begun = new Semaphore(0)
  val interrupted = new Semaphore(0)
}
