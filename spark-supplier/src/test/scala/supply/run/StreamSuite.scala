package supply.run

import org.apache.spark.sql.functions.{array, col, udf}
import org.apache.spark.sql.streaming.StreamingQuery
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, SourceException}
import supply.protocol.Layout.MappedFileHeader
import supply.testing.{Background, LocalSpark, TemporaryFolder, TestRank, TestStream}

/** Streaming queries with real ranks in C: batches, ends, failures and restarts. */
class StreamSuite extends AnyFunSuite with LocalSpark {
  import Background.{inBackground, result}
  import TestStream.{await, elements, header}

  override protected def slots: Int = 3

  private def withStream[A](ranks: Int = 1, timeout: Double = 20)(
      body: TestStream => A): A = TemporaryFolder { folder =>
    val stream = new TestStream(sc, folder, ranks, timeout)
    try body(stream)
    finally stream.close()
  }

  private def stopAndDrain(query: StreamingQuery, rank: TestRank): Seq[String] = {
    val stopped = inBackground(query.stop())
    val seen = rank.drain()
    rank("close")
    result(stopped)
    seen
  }

  /** What these ranks see of a query that is stopped when `batches` batches are complete. */
  private def seen(stream: TestStream, ranks: Seq[TestRank], batches: Int)(
      start: => StreamingQuery): Seq[Seq[String]] = {
    val draining = ranks.map(rank => inBackground(rank.drain()))
    val query = start
    stream.await(query, batches)
    query.stop()
    assert(query.exception.isEmpty)
    draining.map(result(_))
  }

  private def published(rank: TestRank): Long = header(rank)(_.getLong(MappedFileHeader.published))

  private def batch(number: Int, partitions: Int = 4, rows: Int = 5): Seq[(Int, Int, Int)] =
    for (partition <- 0 until partitions; row <- 0 until rows) yield (number, partition, row)

  test("each batch is an epoch of all ranks, and they end well when the query stops") {
    withStream(ranks = 2) { stream =>
      val all = seen(stream, stream.open(), batches = 4)(stream.start()())
      assert(all.forall(_.last == "END_OF_DATA"))
      // Which one the stop has met is not known.
      val whole = all.map(_.count(_.startsWith("END_OF_EPOCH"))).min
      assert(whole >= 4)
      (0 until whole).foreach(number =>
        assert(all.flatMap(elements).filter(_._1 == number).sorted == batch(number)))
      assert(all.zipWithIndex.forall { case (lines, rank) =>
        elements(lines).forall(_._2 % 2 == rank)
      })
    }
  }

  test("a batch is complete when its ranks ask for more, even if they hold blocks of it") {
    withStream() { stream =>
      val rank = stream.open(ringBytes = 64 * 4096).head
      val query = stream.start(rows = 3, partitions = 1)()
      assert(Seq.fill(4)(rank("next").split(' ').head) == Seq("OK", "END_OF_EPOCH", "OK",
        "END_OF_EPOCH"))
      assert(rank("counts") == "AGAIN")
      stream.await(query, batches = 1)
      assert(stopAndDrain(query, rank).last == "END_OF_DATA")
    }
  }

  test("between batches the ranks get signals that their stream lives") {
    withStream(timeout = 4) { stream =>
      val rank = stream.open().head
      val drained = inBackground(rank.drain())
      val query = stream.start(pause = true)()
      stream.await(query, batches = 1)
      (1 to 2).foreach { _ =>
        header(rank)(_.putInt(MappedFileHeader.taskPid, 0))
        await(header(rank)(_.getInt(MappedFileHeader.taskPid)) != 0)
      }
      query.stop()
      assert(result(drained).last == "END_OF_DATA")
    }
  }

  /**
   * Starts a query and stops it in the middle of batch 0: it needs more blocks than the two of the
   * rank's ring.
   */
  private def startAndHold(stream: TestStream): (StreamingQuery, TestRank) = {
    val rank = stream.open(ringBytes = 2 * 4096).head
    val query = stream.start()()
    await(published(rank) == 2)
    (query, rank)
  }

  /** The same, and stops the query there; returns the position of its rank. */
  private def stopInBatch(stream: TestStream): String = {
    val (query, rank) = startAndHold(stream)
    header(rank)(_.putInt(MappedFileHeader.taskPid, 0))
    val stopped = inBackground(query.stop())
    // The batch's task has left: another one waits for room.
    await(header(rank)(_.getInt(MappedFileHeader.taskPid)) != 0)
    val seen = rank.drain()
    result(stopped)
    assert(
      elements(seen) == batch(0).take(5) && seen.last == "END_OF_DATA" && query.exception.isEmpty)
    val position = rank.position()
    rank("close")
    position
  }

  test(
    "a query that stops in the middle of a batch resumes there with ranks that bring their positions") {
    withStream() { stream =>
      val ranks = stream.open(positions = Seq(stopInBatch(stream)))
      assert(elements(seen(stream, ranks, batches = 2)(stream.start()()).head).take(35) ==
        batch(0).drop(5) ++ batch(1))
    }
  }

  test(
    "a batch that some rank has not received completely comes again to ranks without a position") {
    withStream() { stream =>
      stopInBatch(stream)
      val lines = seen(stream, stream.open(), batches = 1)(stream.start()()).head
      assert(elements(lines).take(20) == batch(0))
    }
  }

  /** How the rank and the query end. */
  private def failure(
      stream: TestStream, position: String, start: => StreamingQuery): (String, String) = {
    val rank = stream.open(positions = Seq(position)).head
    val query = start
    val said = rank("next")
    rank("close")
    (said, intercept[Exception](query.awaitTermination(60000)).getMessage)
  }

  test(
    "a position is refused if the batch has other partitions, by another stream, and by a later batch") {
    withStream() { stream =>
      val position = stopInBatch(stream)
      def refused(text: String, start: => StreamingQuery): Unit = {
        val (rank, query) = failure(stream, position, start)
        assert(rank.startsWith("ERROR SUPPLY_ERROR_SPARK") && rank.contains(text) && query.contains(
          text))
      }
      refused("batch 0 has 5 partitions, and had 4", stream.start(partitions = 5)())
      refused("of something else than this stream", stream.start(checkpoint = "other")())
      val ranks = stream.open()
      seen(stream, ranks, batches = 2)(stream.start()())
      ranks.head("close")
      refused("the rank wants to resume in batch 0 of the stream, which is at batch",
        stream.start()())
    }
  }

  test("if a rank dies, the query and the other ranks fail with the same line") {
    withStream(ranks = 2) { stream =>
      val ranks = stream.open(ringBytes = 2 * 4096)
      val dying = ranks.head
      val query = stream.start()()
      val drained = inBackground(ranks.last.drain())
      await(published(dying) == 2)
      dying.kill()
      val text = "pair of rank 0"
      assert(result(drained).last.contains(text))
      assert(intercept[Exception](query.awaitTermination(60000)).getMessage.contains(text))
    }
  }

  private val waitForRank = Map("wait-for-rank" -> "true")

  Seq(Map.empty[String, String], waitForRank).foreach { options =>
    val which = if (options.isEmpty) "" else " that waits for ranks"

    test(s"a query$which may start before its ranks") {
      withStream() { stream =>
        val query = stream.start(options = options)()
        await(query.status.message == "Processing new data")
        assert(elements(seen(stream, stream.open(), batches = 2)(query).head).take(40) ==
          batch(0) ++ batch(1))
      }
    }

    test(
      s"a query$which whose ranks do not come ends at its time limit, and says what is missing") {
      withStream(timeout = 1) { stream =>
        val failed =
          intercept[Exception](stream.start(options = options)().awaitTermination(60000)).getMessage
        assert(failed.contains("pair of rank 0") && failed.contains(
          "no rank has opened it: is mpirun running on this node, with the same") &&
          failed.contains("(waited 1 s; --rank-timeout)"))
      }
    }
  }

  test(
    "a query that waits for ranks continues with one that comes back in the middle of a batch") {
    withStream(ranks = 2) { stream =>
      val ranks = stream.open(ringBytes = 2 * 4096)
      val dying = ranks.head
      val query = stream.start(options = waitForRank)()
      val drained = inBackground(ranks.last.drain())
      val taken = dying("next")
      assert(dying("release 0") == "OK")
      val position = dying.position()
      dying.kill()
      val rank = stream.openAgain(0, position)
      val mine =
        elements(taken +: seen(stream, Seq(rank), batches = 2)(query).head)
      assert(mine.take(20) == (batch(0) ++ batch(1)).filter(_._2 % 2 == 0))
      assert(elements(result(drained)).take(20) == (batch(0) ++ batch(1)).filter(_._2 % 2 == 1))
    }
  }

  test("a query that waits for a rank fails with a line that says so if none comes back") {
    withStream(ranks = 2, timeout = 2) { stream =>
      val ranks = stream.open(ringBytes = 2 * 4096)
      val query = stream.start(options = waitForRank)()
      val drained = inBackground(ranks.last.drain())
      await(published(ranks.head) == 2)
      ranks.head.kill()
      val text =
        "its files are there, but their rank is dead, and no new rank has opened it (waited 2 s; --rank-timeout)"
      assert(intercept[Exception](query.awaitTermination(60000)).getMessage.contains(text))
      assert(result(drained).last.contains(text))
    }
  }

  test("a query that fails tells its ranks why") {
    withStream() { stream =>
      val rank = stream.open().head
      val fail = udf((value: Long) =>
        if (value == 27) throw new SourceException("row 27 is broken") else value)
      val query = stream.start()(_.select(fail(col("value")).as("value")))
      val seen = rank.drain()
      assert(elements(seen).take(20) == batch(0) && seen.last.contains(
        "ERROR SUPPLY_ERROR_SPARK row 27 is broken"))
      assert(
        intercept[Exception](query.awaitTermination(60000)).getMessage.contains("row 27 is broken"))
    }
  }

  test(
    "batches without rows are epochs without blocks, even if the length of an array is not known yet") {
    withStream() { stream =>
      val rank = stream.open().head
      val query =
        stream.start()(_.where("value >= 40").select(array(col("value"), col("value")).as("pair")))
      assert(Seq.fill(2)(rank("next")) == Seq("END_OF_EPOCH 0", "END_OF_EPOCH 1"))
      assert(elements(seen(stream, Seq(rank), batches = 3)(query).head).take(20) == batch(2))
    }
  }

  test("rows of a stateful query, which come from a shuffle, come once") {
    withStream() { stream =>
      val lines = seen(stream, stream.open(), batches = 3)(stream.start()(
          _.withColumn("tenth", col("value") / 10 cast "int").dropDuplicates("tenth"))).head
      assert((0 to 2).map(number => elements(lines).count(_._1 == number)) == Seq(2, 2, 2))
    }
  }

  test("a query without ranks can be stopped, and a query without its files does not start") {
    withStream() { stream =>
      val query = stream.start()()
      query.stop()
      assert(query.exception.isEmpty && sc.getLocalProperty("spark.jobGroup.id") == null)
      assert(intercept[ConfigException](stream.start(options = Map(
            "mapped-files" -> "/nowhere/mapped-files.conf"))()).getMessage.contains("/nowhere/"))
    }
  }

  test("a query ends its ranks although one whose name begins its name, or has it, ended before") {
    Seq[TestStream => Unit](
      _.elsewhere("bo").stop(),
      _.elsewhere("both", ofSession = false).stop(),
      stream => Seq("b", "bot").map(stream.elsewhere(_)).foreach(_.stop())).foreach { others =>
      withStream() { stream =>
        val draining = inBackground(stream.open().head.drain())
        // No batch comes after the others.
        val query = stream.start(pause = true, options = Map("queryName" -> "both"))()
        stream.await(query, batches = 1)
        others(stream)
        assert(query.isActive)
        query.stop()
        assert(result(draining).last == "END_OF_DATA")
      }
    }
  }

  test("two queries of one name, of two sessions, each end their own ranks") {
    val options = Map("queryName" -> "twins")
    withStream() { first =>
      withStream() { second =>
        val draining = Seq(first, second).map(stream => inBackground(stream.open().head.drain()))
        val ofFirst = first.start(pause = true, options = options)()
        val ofSecond = second.start(pause = true, options = options, ofSession = false)()
        first.await(ofFirst, batches = 1)
        second.await(ofSecond, batches = 1)
        ofFirst.stop()
        assert(result(draining.head).last == "END_OF_DATA" && ofSecond.isActive)
        ofSecond.stop()
        assert(result(draining.last).last == "END_OF_DATA")
      }
    }
  }

  test("a query whose start Spark refuses leaves nothing in its session") {
    withStream() { stream =>
      val query = stream.start(pause = true, options = Map("queryName" -> "taken"))()
      val listeners = stream.spark.streams.listListeners().length
      intercept[IllegalArgumentException](
        stream.start(pause = true, checkpoint = "other", options = Map("queryName" -> "taken"))())
      await {
        System.gc()
        stream.elsewhere("next").stop()
        stream.spark.streams.listListeners().length == listeners
      }
      query.stop()
    }
  }

  Seq("epochs" -> "2", "resident" -> "true", "seed" -> "7", "shuffle" -> "none",
    "shuffle" -> "all", "exchange-fraction" -> "0.5", "uneven" -> "drop").foreach {
    case (name, value) =>
      test(s"option $name, as $value, is refused by name") {
        withStream() { stream =>
          val rank = stream.open().head
          val message =
            intercept[ConfigException](stream.start(options = Map(name -> value))()).getMessage
          assert(message.startsWith(s"option '$name' is for runs, not for streams"))
          assert(rank("next") == s"ERROR SUPPLY_ERROR_SPARK $message")
        }
      }
  }

  test("only the output mode append is supported") {
    withStream() { stream =>
      val ranks = stream.open()
      val message = intercept[ConfigException](stream.start(mode = "update")()).getMessage
      assert(message.contains("outputMode(\"append\"), not Update"))
      ranks.foreach(rank => assert(rank("next") == s"ERROR SUPPLY_ERROR_SPARK $message"))
    }
  }
}
