package supply.api

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.net.InetAddress
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{Base64, HexFormat}

import scala.collection.mutable

import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.apache.spark.sql.SparkSession
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.task.TaskReport
import supply.testing.Background.{inBackground, result}
import supply.testing.{HubSocket, LocalSpark}

/** The hub by reads of the data source, as a client of Spark Connect uses it. */
class HubCallsSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  // RFC 7919: 2^2048 - 2^1984 + (floor(2^1918 e) + 560316) 2^64 - 1.
  private val prime = {
    val guard = 64
    val e = Iterator.iterate((BigInt(1) << (1918 + guard), 1)) { case (term, k) =>
      (term / k, k + 1)
    }
      .map(_._1).takeWhile(_ > 0).sum
    (BigInt(1) << 2048) - (BigInt(1) << 1984) + (((e >> guard) + 560316) << 64) - 1
  }
  private val secret = BigInt("123456789" * 20)
  private val public = BigInt(2).modPow(secret, prime).toString(16)

  private def keyWith(opened: Array[Byte]): Array[Byte] = {
    val theirs = BigInt(new String(opened, UTF_8).split(" ").last, 16)
    val shared = theirs.modPow(secret, prime).toByteArray
    MessageDigest.getInstance("SHA-256").digest(
      (Array.fill[Byte](256)(0) ++ shared).takeRight(256))
  }

  private lazy val key =
    try keyWith(call("open", "for-key"))
    finally Hubs.close("for-key")

  private def proofOf(options: (String, Any)*): String = {
    val texts = options.toMap.toSeq.sortBy(_._1).flatMap { case (name, value) =>
      Seq(name, value.toString)
    }
    HexFormat.of().formatHex(HubSocket.hmac(key,
        texts.map(text =>
          MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))): _*))
  }

  private def proof(verb: String, run: String, options: (String, Any)*): String =
    proofOf(Seq("hub" -> verb, "hub-run" -> run) ++ options: _*)

  private def call(verb: String, run: String, options: (String, Any)*): Array[Byte] = {
    val proving =
      if (verb == "open") "hub-public" -> public
      else "hub-proof" -> proof(verb, run, options: _*)
    callWith(Seq("hub" -> verb, "hub-run" -> run, proving) ++ options: _*)
  }

  /** A call that is not to the hub. */
  private def ask(options: (String, Any)*): String =
    new String(callWith(options :+ "hub-proof" -> proofOf(options: _*): _*), UTF_8)

  private def callWith(options: (String, Any)*): Array[Byte] = {
    val read = spark.read.format("supply").options(options.map { case (name, value) =>
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
    call("send", "a", "number" -> 2, "bytes" -> piecesTo((1, 0, "another")))
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
    assert(wrong("open", "hub-public" -> "5") == "the run b has another key")
    Seq("xy", "", "0", "1", (prime - 1).toString(16), prime.toString(16)).foreach(number =>
      assert(wrong("open", "hub-public" -> number).startsWith("hub-public"), number))
    Seq("poll", "send", "close").foreach { verb =>
      val others = Seq("", "xy", "00" * 32, proof(verb, "c"), proof("call", "b"),
        proof(verb, "b", "after" -> 1, "number" -> 2), proof(verb, "b", "bytes" -> "AAAA"))
      others.foreach(other =>
        assert(wrong(verb, "hub-proof" -> other) == "hub-proof proves no key of b", verb))
    }
    assert(wrong("push").startsWith("hub is 'push'"))
    assert(wrong("send", "number" -> 2).contains("2"))
    assert(wrong("send", "number" -> 1, "bytes" -> "?").startsWith("bytes is no text"))
    Seq("AAAA", piecesTo((1, 7, "a")), piecesTo((1, 0, "abc")).dropRight(4)).foreach(bytes =>
      assert(wrong("send", "number" -> 1, "bytes" -> bytes).startsWith(
          "bytes has no whole pieces")))
    assert(wrong("poll", "ranks" -> 2).contains("--ranks"))
    call("close", "b")
  }

  test("each call about an open run, or about ranks, proves the key that its client has") {
    call("open", "c")
    val calls = Seq(
      Seq("call" -> "turn", "turn" -> "release", "run" -> "c"),
      Seq("call" -> "end-with-ranks", "run" -> "c"),
      Seq("call" -> "checkpoints", "checkpoints" -> "begin", "run" -> "c",
        "text" -> """{"to": null, "from": null}"""),
      Seq("call" -> "times", "run" -> "c"),
      Seq("call" -> "forget", "run" -> "c"))
    val files =
      "\"mapped-files\": \"/nowhere/pair-0\", \"named-pipes\": \"/nowhere/in /nowhere/out\""
    val opens = Seq("ranks-call" -> "open", "ranks-id" -> "d",
      "json" ->
        s"""{"ranks": 1, "timeout": 1, "resultsFolder": "/nowhere", $files, "public": "$public"}""")
    val opened = new String(callWith(opens: _*), UTF_8)
    assert(opened.contains("\"public\":"))
    val ranks = Seq("forget", "cancel", "gone").map(name =>
      Seq("ranks-call" -> name, "ranks-id" -> "d", "json" -> """{"matrix": "m"}"""))
    (calls ++ ranks).foreach { options =>
      def refused(proof: (String, String)*) =
        assert(intercept[ConfigException](callWith(options ++ proof: _*)).getMessage ==
            s"hub-proof proves no key of ${if (calls.contains(options)) "c" else "d"}", options)
      refused()
      refused("hub-proof" -> proofOf(options.tail: _*))
      refused("hub-proof" -> proofOf(options :+ "text" -> "other": _*))
      refused("hub-proof" -> proof("close", "c"))
      assert(ask(options: _*).startsWith("{"), options)
    }
    // What is known of a call ends with it, and with the run.
    val report = TaskReport(rank = 0, host = "node", partitions = 1, elements = 2, bytes = 3,
      nanos = 4, waitedForRank = 5, waitedForSource = 6)
    val earlier = Hubs.find("c").get.call
    earlier.add("df", Seq(report))
    assert(earlier.haveReturned || ask(calls(1): _*) == "{}" && earlier.haveReturned)
    assert(ask(calls(3): _*).contains("\"data\":\"df\""))
    ask(calls.last: _*)
    earlier.add("validation", Seq(report))
    assert(ask(calls(3): _*) == "{\"tasks\":[]}" && !Hubs.find("c").get.call.haveReturned)
    // Nobody else takes the name of ranks.
    assert(intercept[ConfigException](callWith(opens.map { case (name, value) =>
      name -> value.replace(public, "5")
    }: _*)).getMessage == "the ranks d have another key")
    // A run that is not open, or no more: its turn may be asked for and released.
    call("close", "c")
    calls.filterNot(_.contains("call" -> "checkpoints")).foreach(options =>
      assert(new String(callWith(options: _*), UTF_8).startsWith("{"), options))
  }

  test("a call that the client has made long ago gives no newer pieces") {
    val peer = join("old", call("open", "old"))
    peer.say("one").say("two")
    assert(poll("old", 0).nonEmpty)
    assert(poll("old", 1).map(_._4).head == "one")
    assert(poll("old", 2) == Seq((3, 1, 0, "two")))
    Seq(0, 1).foreach(after =>
      assert(intercept[ConfigException](poll("old", after)).getMessage ==
        s"after is $after, and 2 was named"))
    call("close", "old")
    peer.close()
  }
}
