package supply.api

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.net.InetAddress
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import scala.collection.mutable

import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.apache.spark.sql.SparkSession
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.testing.Background.{inBackground, result}
import supply.testing.{HubSocket, LocalSpark}

/** The hub by reads of the data source, as a client of Spark Connect uses it. */
class HubCallsSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()
  private val key = Array.tabulate[Byte](32)(i => (i * 9).toByte)

  private def hex(key: Array[Byte]) = key.map(byte => f"${byte & 0xff}%02x").mkString

  private def call(verb: String, run: String, options: (String, Any)*): Array[Byte] = {
    val all = Seq("hub" -> verb, "hub-run" -> run, "hub-key" -> hex(key)) ++ options
    val read = spark.read.format("supply").options(all.map { case (name, value) =>
      name -> value.toString
    }.toMap).load()
    assert(read.columns.toSeq == Seq("answer"))
    val rows = read.collect()
    assert(rows.length == 1)
    rows.head.getAs[Array[Byte]](0)
  }

  private def join(run: String, opened: Array[Byte]): HubSocket = {
    val words = new String(opened, UTF_8).split(" ")
    HubSocket.of(InetAddress.getByName(words(0)), words(1).toInt, HubSocket.Peer, run, key)
  }

  /** Number, peer, flag and text of each piece. */
  private def pieces(answer: Array[Byte]): Seq[(Long, Int, Int, String)] = {
    val in = new DataInputStream(new ByteArrayInputStream(answer))
    val read = mutable.Buffer.empty[(Long, Int, Int, String)]
    while (in.available > 0) {
      val (number, peer, flag) = (in.readLong(), in.readInt(), in.readUnsignedByte())
      val bytes = new Array[Byte](in.readInt())
      in.readFully(bytes)
      read += ((number, peer, flag, new String(bytes, UTF_8)))
    }
    read.toSeq
  }

  private def poll(run: String, after: Long) =
    pieces(call("poll", run, "after" -> after, "millis" -> 60000))

  /** Pieces in the form of a client's connection, in base64. */
  private def piecesTo(pieces: (Int, Int, String)*): String = {
    val all = new ByteArrayOutputStream
    val out = new DataOutputStream(all)
    pieces.foreach { case (peer, flag, text) =>
      out.writeInt(peer)
      out.writeByte(flag)
      out.writeInt(text.length)
      out.write(text.getBytes(UTF_8))
    }
    Base64.getEncoder.encodeToString(all.toByteArray)
  }

  test("a client opens a run, polls, sends and closes, without a job of Spark") {
    val jobs = new java.util.concurrent.atomic.AtomicInteger
    val listener = new SparkListener {
      override def onJobStart(start: SparkListenerJobStart): Unit = { jobs.incrementAndGet(); () }
    }
    sc.addSparkListener(listener)
    val opened = call("open", "a")
    assert(call("open", "a").sameElements(opened))
    val peer = join("a", opened)
    assert(poll("a", 0) == Seq((1, 1, 3, "")))
    // Without a newer number, pieces come again.
    assert(poll("a", 0) == Seq((1, 1, 3, "")))
    val waiting = inBackground(poll("a", 1))
    peer.say("hello")
    assert(result(waiting) == Seq((2, 1, 0, "hello")))
    assert(pieces(call("poll", "a", "after" -> 2, "millis" -> 10)).isEmpty)

    call("send", "a", "number" -> 1, "bytes" -> piecesTo((1, 1, "one "), (1, 0, "message")))
    // A client that got no answer sends it again.
    call("send", "a", "number" -> 1, "bytes" -> piecesTo((1, 1, "one "), (1, 0, "message")))
    call("send", "a", "number" -> 2, "peer" -> 1, "bytes" -> piecesTo((1, 0, "another")))
    assert(Seq.fill(3)(peer.piece()).map { case (flag, bytes) =>
      flag -> new String(bytes, UTF_8)
    } == Seq(1 -> "one ", 0 -> "message", 0 -> "another"))

    call("close", "a")
    call("close", "a")
    assert(peer.isEnded)
    peer.close()
    // Listeners are notified later.
    spark.range(1).rdd.count()
    val end = new supply.core.Deadline(60)
    assert(end.poll(20)(jobs.get == 1))
    sc.removeSparkListener(listener)
  }

  test("a long message comes in several answers, each of at most 8 MiB") {
    val peer = join("long", call("open", "long"))
    val part = Array.fill[Byte](1 << 20)('x')
    val sent = inBackground {
      (1 to 40).foreach(i => peer.send(if (i < 40) 1 else 0, part))
      peer.out.flush()
    }
    var after = 0L
    var bytes = 0L
    var isEnded = false
    while (!isEnded) {
      val answer = call("poll", "long", "after" -> after, "millis" -> 60000)
      assert(answer.length <= (8 << 20))
      val some = pieces(answer)
      assert(some.map(_._1) == (after + 1 to after + some.size))
      after += some.size
      bytes += some.map(_._4.length).sum
      isEnded = some.lastOption.exists(piece => piece._3 == 0)
    }
    assert(bytes == (40L << 20))
    result(sent)
    call("close", "long")
    peer.close()
  }

  test("a message of several MiB is sent in one call") {
    val peer = join("much", call("open", "much"))
    val texts = (0 until 6).map(i => s"$i" * (1 << 20))
    call("send", "much", "number" -> 1,
      "bytes" -> piecesTo(texts.map(text => (1, if (text.head == '5') 0 else 1, text)): _*))
    val got = new StringBuilder
    var flag = 1
    while (flag == 1) {
      val (next, bytes) = peer.piece()
      flag = next
      got ++= new String(bytes, UTF_8)
    }
    assert(got.toString == texts.mkString)
    call("close", "much")
    peer.close()
  }

  test("another key, a run that is not there, and options that are wrong") {
    def wrong(verb: String, options: (String, Any)*) =
      intercept[ConfigException](call(verb, "b", options: _*)).getMessage
    assert(wrong("poll").startsWith("there is no run b at the hub"))
    assert(wrong("send").startsWith("there is no run b at the hub"))
    call("open", "b")
    Seq("open", "poll", "send", "close").foreach { verb =>
      assert(wrong(verb, "hub-key" -> "00" * 32) == "the run b has another key", verb)
      assert(wrong(verb, "hub-key" -> "xy" * 32).startsWith("hub-key"), verb)
    }
    assert(wrong("open", "hub-key" -> "00").contains("32 bytes"))
    assert(wrong("push").startsWith("hub is 'push'"))
    assert(wrong("send", "number" -> 2).contains("2"))
    assert(wrong("send", "number" -> 1, "bytes" -> "?").startsWith("bytes is no text"))
    Seq("AAAA", piecesTo((1, 7, "a")), piecesTo((1, 0, "abc")).dropRight(4)).foreach(bytes =>
      assert(wrong("send", "number" -> 1, "bytes" -> bytes).startsWith(
          "bytes has no whole pieces")))
    assert(wrong("poll", "ranks" -> 2).contains("--ranks"))
    call("close", "b")
  }
}
