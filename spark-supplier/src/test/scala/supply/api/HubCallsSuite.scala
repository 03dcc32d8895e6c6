package supply.api

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.net.InetAddress
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{Base64, HexFormat}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.run.Hubs
import supply.task.TaskReport
import supply.testing.Background.{inBackground, result}
import supply.testing.{HubSocket, LocalSession}

/** The hub by reads of the data source, as a client of Spark Connect uses it. */
class HubCallsSuite extends AnyFunSuite with LocalSession {
  private val json = new ObjectMapper

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
    val theirs = BigInt(read(opened).path("public").asText, 16)
    val shared = theirs.modPow(secret, prime).toByteArray
    MessageDigest.getInstance("SHA-256").digest(
      (Array.fill[Byte](256)(0) ++ shared).takeRight(256))
  }

  private lazy val key =
    try keyWith(call("open", "for-key"))
    finally Hubs.close("for-key")

  private def read(answer: Array[Byte]): JsonNode = json.readTree(answer)

  private def text(words: (String, Any)*): String =
    json.writeValueAsString(words.toMap.asJava)

  private def proof(name: String, words: String): String =
    HexFormat.of().formatHex(HubSocket.hmac(key,
        Seq(name, words).map(text =>
          MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))): _*))

  private def call(verb: String, run: String, words: (String, Any)*): Array[Byte] =
    if (verb == "open")
      callWith("hub-open", text(Seq("public" -> public, "run" -> run) ++ words: _*))
    else ask(s"hub-$verb", text(Seq("run" -> run) ++ words: _*))

  private def ask(name: String, words: String): Array[Byte] =
    callWith(name, words, "proof" -> proof(name, words))

  private def callWith(name: String, words: String, others: (String, String)*): Array[Byte] = {
    val read = spark.read.format("supply").options(
      (Seq("call" -> name, "json" -> words) ++ others).toMap).load()
    assert(read.columns.toSeq == Seq("answer"))
    val rows = read.collect()
    assert(rows.length == 1)
    rows.head.getAs[Array[Byte]](0)
  }

  private def join(run: String, opened: Array[Byte]): HubSocket = {
    val words = read(opened)
    HubSocket.of(InetAddress.getByName(words.path("host").asText), words.path("port").asInt,
      HubSocket.Peer, run, key)
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

  /** A peer of an open run. */
  private def withPeer(run: String)(test: HubSocket => Unit): Unit = {
    Using.resource(join(run, call("open", run)))(test)
    call("close", run)
    ()
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
    val lastJob = sc.range(0, 1).countAsync()
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
    assert(Seq.fill(2)(peer.message().map(new String(_, UTF_8)).toSeq) ==
      Seq(Seq("one ", "message"), Seq("another")))

    call("close", "a")
    call("close", "a")
    assert(peer.isEnded)
    peer.close()
    assert(sc.range(0, 1).countAsync().jobIds.map(_ - 1) == lastJob.jobIds)
  }

  test("a long message comes in several answers, each of at most 8 MiB") {
    withPeer("long") { peer =>
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
    }
  }

  test("a message of several MiB is sent in one call") {
    withPeer("much") { peer =>
      val texts = (0 until 6).map(i => s"$i" * (1 << 20))
      call("send", "much", "number" -> 1,
        "bytes" -> piecesTo(texts.map(text => (1, if (text.head == '5') 0 else 1, text)): _*))
      assert(peer.heardText() == texts.mkString)
    }
  }

  test("another key, a run that is not there, and options that are wrong") {
    def wrong(verb: String, options: (String, Any)*) =
      intercept[ConfigException](call(verb, "b", options: _*)).getMessage
    assert(wrong("poll").startsWith("there is no run b at the hub"))
    assert(wrong("send").startsWith("there is no run b at the hub"))
    call("open", "b")
    assert(wrong("open", "public" -> "5") == "the run b has another key")
    Seq("xy", "", "0", "1", (prime - 1).toString(16), prime.toString(16)).foreach(number =>
      assert(wrong("open", "public" -> number).startsWith("public is no"), number))
    Seq("hub-poll", "hub-send", "hub-close").foreach { name =>
      val words = text("run" -> "b")
      val others =
        Seq("", "xy", "00" * 32, proof(name, text("run" -> "c")), proof("turn-ask", words),
          proof(name, text("run" -> "b", "after" -> 1)))
      others.foreach(other =>
        assert(intercept[ConfigException](callWith(name, words, "proof" -> other)).getMessage ==
            "proof proves no key of b", name))
    }
    assert(intercept[ConfigException](callWith("push", "{}")).getMessage.startsWith(
        "call is 'push'"))
    assert(intercept[ConfigException](callWith("slots", "{")).getMessage == "json is no JSON: {")
    assert(wrong("send", "number" -> 2).contains("2"))
    assert(wrong("send", "number" -> 1, "bytes" -> "?").startsWith("bytes is no text"))
    Seq("AAAA", piecesTo((1, 7, "a")), piecesTo((1, 0, "abc")).dropRight(4)).foreach(bytes =>
      assert(wrong("send", "number" -> 1, "bytes" -> bytes).startsWith(
          "bytes has no whole pieces")))
    call("close", "b")
  }

  test("each call about an open run, or about ranks, proves the key that its client has") {
    call("open", "c")
    val calls = Seq("turn-release", "end-with-ranks", "checkpoints-begin", "times", "forget").map(
      _ -> text("run" -> "c"))
    val opens = "ranks-open" -> text("ranks" -> "d", "count" -> 1, "timeout" -> 1,
      "results_folder" -> "/nowhere", "mapped_files" -> "m", "named_pipes" -> "n",
      "texts" -> Map("m" -> "/nowhere/pair-0", "n" -> "/nowhere/in /nowhere/out").asJava,
      "public" -> public)
    assert(read(callWith(opens._1, opens._2)).has("public"))
    val ranks =
      Seq("matrix-forget", "ranks-cancel", "ranks-gone").map(_ -> text("ranks" -> "d",
          "matrix" -> "m"))
    (calls ++ ranks).foreach { case (name, words) =>
      val named = if (ranks.contains(name -> words)) "d" else "c"
      def refused(proof: (String, String)*) =
        assert(intercept[ConfigException](callWith(name, words, proof: _*)).getMessage ==
            s"proof proves no key of $named", name)
      refused()
      refused("proof" -> proof(name, s"$words "))
      refused("proof" -> proof("hub-close", words))
      assert(read(ask(name, words)).isObject, name)
    }
    // What is known of a call ends with it, and with the run.
    val report = TaskReport(rank = 0, host = "node", partitions = 1, elements = 2, bytes = 3,
      nanos = 4, waitedForRank = 5, waitedForSource = 6)
    val earlier = Hubs.find("c").get.call
    earlier.add("df", Seq(report))
    def times = read(ask("times", text("run" -> "c"))).path("tasks")
    ask("end-with-ranks", text("run" -> "c"))
    assert(earlier.haveReturned && times.path(0).path("data").asText == "df")
    ask("forget", text("run" -> "c"))
    earlier.add("validation", Seq(report))
    assert(times.isEmpty && !Hubs.find("c").get.call.haveReturned)
    // Nobody else takes the name of ranks.
    assert(intercept[ConfigException](callWith(opens._1,
        opens._2.replace(public, "5"))).getMessage == "the ranks d have another key")
    // A run that is not open, or no more: its turn may be asked for and released.
    call("close", "c")
    calls.filterNot(_._1 == "checkpoints-begin").foreach { case (name, words) =>
      assert(read(callWith(name, words)).isObject, name)
    }
  }

  test("a call that the client has made long ago gives no newer pieces") {
    withPeer("old") { peer =>
      peer.say("one").say("two")
      assert(poll("old", 0).nonEmpty)
      assert(poll("old", 1).map(_._4).head == "one")
      assert(poll("old", 2) == Seq((3, 1, 0, "two")))
      Seq(0, 1).foreach(after =>
        assert(intercept[ConfigException](poll("old", after)).getMessage ==
          s"after is $after, and 2 was named"))
    }
  }
}
