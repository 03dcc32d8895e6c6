package supply.run

import java.io.{ByteArrayOutputStream, PrintStream}
import java.nio.file.{Files, Path}
import java.util.HexFormat

import scala.util.{Random, Using}

import org.apache.spark.TaskContext
import org.apache.spark.sql.functions.{col, udf}
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.util.QueryExecutionListener
import org.scalatest.funsuite.AnyFunSuite

import supply.api.Calls
import supply.core.{ConfigException, RankEndedException, RankException, SupplyException}
import supply.net.Listener
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
import supply.task.Served
import supply.testing.Background.{inBackground, result}
import supply.testing.{HubSocket, LinkRank, LocalSession, LongTest, ResultFiles, TemporaryFolder}

class ServedSuite extends ServedTests(isTls = false)

class ServedTlsSuite extends ServedTests(isTls = true) {
  /** `make test` has the others without TLS, in ServedSuite. */
  private val alsoWithoutTls = testNames.filterNot(_.contains("get every row once"))

  override def tags: Map[String, Set[String]] = super.tags ++ alsoWithoutTls.map(name =>
    name -> (super.tags.getOrElse(name, Set.empty) + LongTest.name))
}

/** Ranks connect to writes of this JVM. */
abstract class ServedTests(isTls: Boolean) extends AnyFunSuite with LocalSession {
  protected val key = "a key"
  private var runs = 0

  override protected def sparkSettings: Seq[(String, String)] =
    Seq("spark.supply.hub.tls" -> isTls.toString)

  // A test sees a task again that has failed once.
  override protected def master: String = s"local[$slots, 2]"

  protected def newRun(): String = {
    runs += 1
    s"${suiteName}_$runs"
  }

  protected def data(rows: Long = 1000, partitions: Int = 6): DataFrame =
    spark.range(0, rows, 1, partitions).selectExpr("id", "concat('row ', id) as label")

  protected def write(data: DataFrame, run: String, ranks: Int, options: (String, Any)*): Unit =
    (Seq("serve" -> run, "serve-secret" -> key, "ranks" -> ranks, "timeout" -> 60) ++ options)
      .foldLeft(data.write.format("supply").mode("append")) { case (writer, (name, value)) =>
        writer.option(name, value.toString)
      }.save()

  /** The address of the hub, when a write has opened it. */
  protected def addressOf(run: String): String = {
    var found = Option.empty[String]
    assert(new supply.core.Deadline(60).poll(20) {
      found = scala.util.Try(s"${Hubs.address(sc)}/$run").toOption
      found.isDefined
    })
    found.get
  }

  protected def rank(run: String, number: Int, ranks: Int = 0, blocks: Int = 4) =
    new LinkRank(addressOf(run), key, number, ranks, blocks)

  private def sorted(rows: Seq[Seq[Any]]) = rows.sortBy(_.head.asInstanceOf[Long])

  private def expected(data: DataFrame): Seq[Seq[Any]] = sorted(data.collect().toSeq.map(_.toSeq))

  for ((cuts, what) <- Seq(0 -> "", 40 -> ", whose connections are cut again and again")) {
    test(s"ranks elsewhere get every row once$what") {
      val run = newRun()
      val rows = data()
      val writing = inBackground(write(rows, run, 2, "epochs" -> 3, "block-elements" -> 17))
      val random = new Random(7)
      val ranks = (0 until 2).map(number =>
        inBackground(rank(run, number, 2).drain(
            Iterator.fill(cuts)(random.synchronized(random.nextInt(8000).toLong)))))
      val done = ranks.map(result(_))
      result(writing)
      assert(sorted(done.flatMap(_.rows)) ==
        expected(rows).flatMap(row => Seq(row, row, row)))
      done.foreach(_.close())
    }
  }

  test("a task that has failed is tried again, and its rank gets the rest") {
    val run = newRun()
    val fails = udf { (id: Long) =>
      if (id == 700 && TaskContext.get().attemptNumber() == 0)
        throw new IllegalStateException("once")
      id
    }
    val rows = data().withColumn("id", fails(col("id"))).select("id", "label")
    val writing = inBackground(write(rows, run, 2, "block-elements" -> 10))
    val ranks = (0 until 2).map(number => inBackground(rank(run, number, 2).drain()))
    val done = ranks.map(result(_))
    result(writing)
    assert(sorted(done.flatMap(_.rows)) == expected(data()))
    done.foreach(_.close())
  }

  test("a failing job tells its ranks why, and so it does for a while after it") {
    val run = newRun()
    val fails =
      udf((id: Long) => if (id > 500) throw new IllegalStateException("no such page") else id)
    val writing = inBackground(write(data().withColumn("id", fails(col("id"))), run, 2))
    val ranks = (0 until 2).map(number => inBackground(rank(run, number).drain()))
    ranks.foreach(each =>
      assert(intercept[LinkRank.Refused](result(each)).getMessage.contains("no such page")))
    assert(intercept[Exception](result(writing)).getMessage.nonEmpty)
    assert(intercept[LinkRank.Refused](rank(run, 0).place()).getMessage.contains("no such page"))
  }

  test("a wrong number of ranks, a rank that is none of them, and a wrong key are refused") {
    val run = newRun()
    val writing = inBackground(write(data(), run, 1))
    assert(intercept[LinkRank.Refused](rank(run, 0, ranks = 3).place()).getMessage ==
      s"there are 3 ranks, and Spark supplies 1 (--ranks) as $run: give both the same number")
    assert(intercept[LinkRank.Refused](rank(run, 1).place()).getMessage.contains("it is rank 1"))
    assertThrows[java.io.IOException](
      new LinkRank(addressOf(run), "another key", 0).place())
    rank(run, 0, ranks = 1).drain().close()
    result(writing)
    assert(rank(run, 0).ask() == (3, s"the run $run has ended"))
  }

  test("a rank whose connection is lost when its task ends learns that it has all") {
    val run = newRun()
    val rows = data()
    val writing = inBackground(write(rows, run, 1))
    val lost = rank(run, 0)
    assert(lost.open(lost.place()).get.kind == Constant.LINK_ACCEPTED)
    while (!lost.hasAll) {
      lost.take(lost.next())
      if (!lost.hasAll && lost.received.size > lost.released) lost.release()
    }
    lost.release()
    lost.close()
    result(writing)
    assert(!lost.isEndSeen)
    assert(lost.drain().isEndSeen && sorted(lost.rows) == expected(rows))
  }

  test(
    "a rank between two writes of one name waits for the second, and a third waits for its end") {
    val run = newRun()
    val first = inBackground(write(data(10), run, 1))
    val one = rank(run, 0)
    one.drain().close()
    result(first)
    val two = inBackground(rank(run, 0).drain())
    val three = inBackground { result(two); rank(run, 0).drain() }
    val writes = Seq(20, 20).map(rows => inBackground(write(data(rows.toLong), run, 1)))
    Seq(two, three).foreach { each =>
      assert(sorted(result(each).rows) == expected(data(20)))
      result(each).close()
    }
    writes.foreach(result(_))
    val endless = inBackground(write(data(10), run, 1))
    assert(rank(run, 0).place() != null)
    assert(intercept[ConfigException](write(data(10), run, 1, "timeout" -> 0.2)).getMessage
        .startsWith(s"ranks are supplied as $run by another write, which has not ended within 0 s"))
    rank(run, 0).drain().close()
    result(endless)
  }

  test("a write that cannot begin leaves nothing open") {
    val run = newRun()
    Hubs.open(sc, run, Array.fill[Byte](32)(1))
    assert(intercept[ConfigException](write(data(10), run, 1)).getMessage.contains(
        "another run has that name"))
    Hubs.close(run)
    val writing = inBackground(write(data(10), run, 1, "serve-secret" -> "another"))
    val done = new LinkRank(addressOf(run), "another", 0, 1).drain()
    result(writing)
    done.close()
  }

  test("a second rank of one number is refused, and the first one is named") {
    val run = newRun()
    val writing = inBackground(write(data(), run, 1))
    val first = rank(run, 0)
    val place = first.place()
    assert(first.open(place).get.kind == Constant.LINK_ACCEPTED)
    Using.resource(rank(run, 0)) { second =>
      val refused = second.open(place).get
      assert(refused.kind == Constant.LINK_REFUSED)
      assert(refused.text.startsWith("rank 0 is connected already, from 127.0.0.1 (process 4711)"))
      assert(refused.text.endsWith("start each rank once"))
    }
    first.drain().close()
    result(writing)
  }

  test("a rank that stops says why, and one that stays away is missed") {
    val run = newRun()
    val writing = inBackground(write(data(), run, 1))
    val stopped = rank(run, 0)
    assert(stopped.open(stopped.place()).get.kind == Constant.LINK_ACCEPTED)
    stopped.send(Constant.LINK_STOP, "the loss is nan".getBytes)
    assert(intercept[RankEndedException](result(writing)).getMessage.contains("the loss is nan"))
    stopped.close()
    val lost = newRun()
    val losing = inBackground(write(data(), lost, 1, "reconnect-timeout" -> 0.2))
    val gone = rank(lost, 0)
    assert(gone.open(gone.place()).get.kind == Constant.LINK_ACCEPTED)
    gone.kill()
    assert(intercept[RankEndedException](result(losing)).getMessage.contains("--reconnect-timeout"))
    val text =
      intercept[RankException](write(data(), newRun(), 1, "rank-timeout" -> 0.2)).getMessage
    assert(text.contains("rank 0 has not connected to supply") && text.contains("within 0 s"))
  }

  test("with wait-for-rank a new rank takes the place of one that has died") {
    val run = newRun()
    val rows = data()
    val writing = inBackground(
      write(rows, run, 1, "wait-for-rank" -> true, "reconnect-timeout" -> 0.2,
        "block-elements" -> 10))
    val first = rank(run, 0)
    assert(first.open(first.place()).get.kind == Constant.LINK_ACCEPTED)
    while (first.received.isEmpty) first.take(first.next())
    first.kill()
    val second = rank(run, 0).drain()
    result(writing)
    assert(sorted(second.rows) == expected(rows))
    second.close()
  }

  test("all ranks get one order of all rows, each by its own ring") {
    val run = newRun()
    val rows = data().orderBy("id")
    val writing = inBackground(write(rows, run, 2, "global-batch" -> 4, "shuffle" -> "none"))
    val ranks = (0 until 2).map(number => inBackground(rank(run, number, 2).drain()))
    ranks.map(result(_)).foreach { each =>
      assert(each.rows.map(_.head) == (0L until 1000))
      each.close()
    }
    result(writing)
  }

  test("each batch of a stream is an epoch, and the ranks reach its end") {
    TemporaryFolder { folder =>
      val rows = data()
      val files = folder.resolve("rows").toString
      rows.repartition(3).write.parquet(files)
      val run = newRun()
      val stream =
        spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(files)
      val query =
        stream.writeStream.format("supply").option("serve", run).option("serve-secret", key)
          .option("ranks", 2).option("timeout", 60)
          .option("checkpointLocation", folder.resolve("checkpoint").toString)
          .trigger(Trigger.AvailableNow()).start()
      val ranks = (0 until 2).map(number => inBackground(rank(run, number, 2).drain()))
      val done = ranks.map(result(_))
      assert(query.awaitTermination(60000) && query.exception.isEmpty)
      assert(sorted(done.flatMap(_.rows)) == expected(rows))
      done.foreach { each =>
        assert(each.epochs == 3)
        each.close()
      }
    }
  }

  test("a run of a client at the hub is served by a name, and by its own") {
    val (run, name) = newRun() -> newRun()
    val own = Array.tabulate[Byte](32)(_.toByte)
    Hubs.open(sc, run, own)
    val mask = Listener.proof(own, s"serve $name".getBytes)
    val masked = ServedWrite.keyOf(key).zip(mask).map { case (one, other) => (one ^ other).toByte }
    def serve(name: String) = Calls.answer(spark, "hub-serve",
      s"""{"run": "$run", "name": "$name", "key": "${HexFormat.of().formatHex(masked)}"}""")
    assert(new String(serve(name)).contains("port"))
    serve(name)
    assertThrows[ConfigException](serve("another"))
    val writing = inBackground(data(100).write.format("supply").mode("append")
        .option("serve", s"$name/data").option("hub-run", run).option("ranks", 1).save())
    val done = rank(s"$name/data", 0).drain()
    result(writing)
    assert(done.rows.size == 100)
    done.close()
    // By that name nobody is the client, and another process of the run is.
    val words = Hubs.open(sc, run, own).split("[ /]")
    val (address, port) = java.net.InetAddress.getByName(words(0)) -> words(1)
    val tls = if (isTls) Some("TLSv1.3") else None
    Using.resource(new HubSocket(address, port.toInt, tls))(client =>
      assert(!client.meets(HubSocket.Client, name, ServedWrite.keyOf(key))))
    HubSocket.of(address, port.toInt, HubSocket.Peer, name, ServedWrite.keyOf(key), tls).close()
    Hubs.close(run)
  }

  test("two kinds of data of one run, and a key that is made and printed") {
    val run = newRun()
    val printed = new ByteArrayOutputStream
    val before = System.err
    System.setErr(new PrintStream(printed, true))
    try {
      val writing = inBackground(
        data().write.format("supply").mode("append").option("serve", s"$run/left").option("ranks",
          1)
          .save())
      assert(new supply.core.Deadline(60).poll(20)(printed.toString.contains("SUPPLY_KEY=")))
      val Printed(address, made) =
        (printed.toString.linesIterator.find(_.startsWith("ranks connect")).get: @unchecked)
      val other = inBackground(data(10).write.format("supply").mode("append")
          .option("serve", s"$run/right").option("ranks", 1).save())
      val left = inBackground(new LinkRank(address, made, 0).drain())
      val right = new LinkRank(address.replace("/left", "/right"), made, 0).drain()
      assert(right.rows.size == 10 && result(left).rows.size == 1000)
      Seq(writing, other).foreach(result(_))
      assert(printed.toString.linesIterator.count(_.startsWith("ranks connect")) == 1)
      right.close()
      result(left).close()
    } finally System.setErr(before)
  }

  private val Printed = "ranks connect by SUPPLY_CONNECT=(\\S+) SUPPLY_KEY=(\\S+)".r

  test("results are kept where the task was, replaced, aborted, read after the end, and released") {
    val run = newRun()
    val served = Served(run, "")
    val writing = inBackground(write(data(10), run, 2))
    def bytes(number: Int) =
      ResultFiles.bytes(number, (0L until 500).map(_ + number * 500))
    val ranks = (0 until 2).map { number =>
      inBackground {
        val own = rank(run, number)
        own.drain(atEnd = { () =>
          assert(own.result("r", ResultFiles.bytes(number, Seq(1L))) == "")
          assert(own.result("r", bytes(number)) == "")
          if (number == 0) assert(own.result("aborted", bytes(number)) == "")
          else {
            own.send(Constant.LINK_RESULT, "aborted".getBytes)
            own.send(Constant.LINK_RESULT_BYTES, bytes(number).take(5000))
            assert(own.answer(Constant.LINK_RESULT_ABORT, "the loss is nan") == "")
          }
          // It begins, and never ends.
          own.send(Constant.LINK_RESULT, "half".getBytes)
          own.send(Constant.LINK_RESULT_BYTES, bytes(number).take(5000))
        })
      }
    }
    ranks.foreach(each => result(each).close())
    result(writing)
    def read(
        name: String) = spark.read.format("supply").option("results", name).option("serve", run)
      .option("timeout", 20)
    val found = read("r").load()
    assert(found.collect().map(row => row.getLong(0) -> row.getString(1)).toSeq.sorted ==
      (0L until 1000).map(id => id -> id.toString))
    assert(Files.getPosixFilePermissions(Path.of(served.folder)).size == 3)
    assert(intercept[RankEndedException](read("aborted").load()).getMessage ==
      "rank 1 aborted its result 'aborted': the loss is nan")
    assert(
      intercept[SupplyException](read("half").load()).getMessage.contains("has sent no result"))
    supply.api.Results.release(found)
    assert(Path.of(served.folder).toFile.list().toSeq.sorted ==
      Seq("rank-0.mapped.aborted.result", "rank-1.mapped.aborted.result.unsealed"))
    assert(intercept[ConfigException](spark.read.format("supply").option("results", "r")
          .option("serve", "nobody").load()).getMessage.contains("has supplied no ranks"))
  }

  test("Spark shows no key in the plan of a write") {
    val shown = new java.util.concurrent.LinkedBlockingQueue[String]
    val listener = new QueryExecutionListener {
      override def onSuccess(name: String, ran: QueryExecution, nanos: Long): Unit = {
        shown.add(ran.toString)
        ()
      }
      override def onFailure(name: String, ran: QueryExecution, cause: Exception): Unit =
        onSuccess(name, ran, 0)
    }
    spark.listenerManager.register(listener)
    try {
      val run = newRun()
      assertThrows[RankException](write(data(10), run, 1, "serve-secret" -> "hush-hush",
          "rank-timeout" -> 0.2))
      val plan = shown.poll(60, java.util.concurrent.TimeUnit.SECONDS)
      assert(plan.contains(run) && !plan.contains("hush-hush"), plan)
    } finally spark.listenerManager.unregister(listener)
  }

  test("what needs ranks on the executors' nodes is refused") {
    for ((option, value) <- Seq("hosts" -> "/none", "share" -> "2", "resident" -> "true",
        "resident-folder" -> "/tmp", "mapped-files" -> "/none")) {
      val text = intercept[ConfigException](write(data(), "run", 1, option -> value)).getMessage
      assert(text.startsWith(s"--$option is for ranks on the nodes"), text)
    }
    assert(intercept[ConfigException](write(data(), "a/b/c", 1)).getMessage.startsWith(
        "--serve is 'a/b/c'"))
    assert(
      intercept[ConfigException](data().write.format("supply").mode("append").save()).getMessage
        .contains("Missing required options: '--mapped-files=FILE', '--named-pipes=FILE'"))
  }

  test("LINK_OPEN says what the task needs, and nothing of another run is here") {
    val run = newRun()
    val writing = inBackground(write(data(), run, 1))
    val place = rank(run, 0).place()
    Using.resource(rank(run, 5))(other => assert(other.open(place).get.kind == Constant.LINK_BUSY))
    Using.resource(rank(run, 0)) { wrong =>
      wrong.header.putInt(At.version, 0x20000)
      val refused = wrong.open(place).get
      assert(refused.kind == Constant.LINK_REFUSED)
      assert(refused.text.contains("speaks contract 2.0"))
    }
    assert(intercept[SupplyException](result(writing)).getMessage.contains("speaks contract 2.0"))
  }
}
