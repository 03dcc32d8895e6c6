package supply.run

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.net.{InetAddress, InetSocketAddress, ServerSocket, Socket, SocketAddress, SocketException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.zip.CRC32

import scala.collection.mutable
import scala.util.{Random, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileSystem, FilterFileSystem, Path => HadoopPath}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, Deadline}
import supply.net.{Connection, Tls}
import supply.testing.Background.{inBackground, result}
import supply.testing.{HubSocket, TemporaryFolder}

class HubSuite extends HubTests(None)

/** tls: its version. */
abstract class HubTests(tls: Option[String]) extends AnyFunSuite {
  protected val loopback = InetAddress.getByName("127.0.0.1")
  protected val key = Array.tabulate[Byte](32)(_.toByte)
  protected val otherKey = Array.fill[Byte](32)(7)

  protected def withHub(limits: Hub.Limits = Hub.Limits(), bind: InetAddress = loopback)(
      test: Hub => Unit): Unit =
    Using.resource(new Hub(bind, limits, tls.map(_ => Tls.selfSigned)))(test)

  protected def join(hub: Hub, role: Int, run: String = "run", key: Array[Byte] = key) =
    HubSocket.of(hub.address, hub.port, role, run, key, tls)

  /** A hub with a run, and the client of the run. */
  protected def withClient(limits: Hub.Limits = Hub.Limits(), bind: InetAddress = loopback)(
      test: (Hub, HubSocket) => Unit): Unit = withHub(limits, bind) { hub =>
    hub.open("run", key)
    Using.resource(join(hub, HubSocket.Client))(test(hub, _))
  }

  /** A peer that has said this, which the client has heard, and nothing before. */
  protected def assertHeard(client: HubSocket, peer: HubSocket, text: String): Unit =
    Using.resource(peer.say(text))(_ =>
      assert(Seq(client.heard(), client.heard()).last == ((1, 0, text))))

  /** A rank that loads its file of a checkpoint, which has begun. */
  private def withFile(folder: CheckpointFolder)(test: HubSocket => Unit): Unit = withHub() { hub =>
    hub.open("run", key).get.checkpoints = CheckpointFolders(None, Some(folder))
    Using.resource(join(hub, HubSocket.File)) { rank =>
      rank.out.write(Array[Byte](1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2))
      rank.out.flush()
      assert(rank.in.readUnsignedByte() == 0)
      test(rank)
    }
  }

  private def connect(hub: Hub) = new HubSocket(hub.address, hub.port, tls)

  private def soon(what: => Boolean): Unit = assert(new Deadline(60).poll(20)(what))

  test("peers and a client send each other messages, and the client sees peers come and go") {
    withClient() { (hub, client) =>
      val one = join(hub, HubSocket.Peer)
      assert(client.heard() == ((1, 3, "")))
      val two = join(hub, HubSocket.Peer)
      assert(client.heard() == ((2, 3, "")))
      one.say("I am one")
      assert(client.heard() == ((1, 0, "I am one")))
      client.sayTo(2, "hello two")
      client.sayTo(99, "nobody")
      client.sayTo(1, "hello ", flag = 1)
      client.sayTo(1, "one")
      assert(two.heardText() == "hello two")
      assert(one.message().map(new String(_, UTF_8)).toSeq == Seq("hello ", "one"))
      two.send(1, "an unfinished".getBytes(UTF_8))
      two.out.flush()
      two.kill()
      // What a killed process has sent may be lost.
      assert(Seq((2, 1, "an unfinished"), (2, 2, "")).contains(client.heard()))
      one.close()
      soon(client.heard() == ((1, 2, "")))
    }
  }

  test("a run has one client, and a peer may come first") {
    withHub() { hub =>
      hub.open("run", key)
      Using.resource(join(hub, HubSocket.Peer).say("early")) { peer =>
        Using.resource(join(hub, HubSocket.Client)) { client =>
          assert(client.heard() == ((1, 3, "")))
          assert(client.heard() == ((1, 0, "early")))
          Using.resource(join(hub, HubSocket.Client))(second => assert(second.isEnded))
          client.sayTo(1, "bye")
          client.sayTo(1, "", flag = 2)
          assert(peer.heardText() == "bye")
          assert(peer.isEnded)
          assert(client.heard() == ((1, 2, "")))
        }
      }
    }
  }

  test("a wrong key is refused, and a run that is not there") {
    withHub() { hub =>
      hub.open("run", key)
      Using.resource(connect(hub)) { peer =>
        val (status, random) = peer.greet(HubSocket.Peer, "run", new Array[Byte](32))
        assert(status == 0)
        peer.out.write(HubSocket.hmac(otherKey, "peer".getBytes(UTF_8), random,
            new Array[Byte](32)))
        peer.out.flush()
        assert(peer.isEnded)
      }
      Using.resource(connect(hub)) { peer =>
        assert(peer.greet(HubSocket.Peer, "walk", new Array[Byte](32))._1 == 1)
        assert(peer.isEnded)
      }
      assert(intercept[ConfigException](hub.open("run", otherKey)).getMessage.contains("run"))
      assert(hub.open("run", key).isDefined)
    }
  }

  test("strangers that say nothing, too little or something else are closed") {
    withHub(Hub.Limits(secondsOfStrangers = 0.5)) { hub =>
      hub.open("run", key)
      Seq("", "SUPPLYH1", "SUPPLYH1\u0000", "GET / HTTP/1.1\r\n\r\n", "SUPPLYH1\u0002").foreach {
        said =>
          Using.resource(connect(hub)) { stranger =>
            stranger.out.write(said.getBytes(UTF_8))
            stranger.out.flush()
            assert(stranger.isEnded)
          }
      }
      // A byte now and then is no greeting either.
      Using.resource(new Socket(loopback, hub.port)) { slow =>
        soon {
          try { slow.getOutputStream.write('S'); false }
          catch { case _: SocketException => true }
        }
      }
      // Whoever has proved the key may be silent for longer.
      val peer = join(hub, HubSocket.Peer)
      Thread.sleep(1000)
      Using.resource(join(hub, HubSocket.Client))(assertHeard(_, peer, "I am here"))
    }
  }

  test("if the client takes nothing, peers wait; then all arrives") {
    val bytes = 32 << 20
    val peers = 3
    withHub(Hub.Limits(waitingBytes = 1 << 20)) { hub =>
      val run = hub.open("run", key).get
      val senders = (0 until peers).map { i =>
        val peer = join(hub, HubSocket.Peer)
        peer -> inBackground(sendMessage(peer, bytes, seed = i))
      }
      soon(run.waitingBytes._1 >= (1 << 20))
      Thread.sleep(500)
      // Each may have read another 64 KiB.
      assert(run.waitingBytes._1 < (1 << 20) + peers * (65 << 10))
      assert(senders.forall(!_._2.isDone))
      Using.resource(join(hub, HubSocket.Client)) { client =>
        val sums = mutable.Map.empty[Int, (CRC32, Long)]
        var ended = 0
        while (ended < peers) {
          val peer = client.in.readInt()
          val (flag, part) = client.piece()
          val (crc, length) = sums.getOrElseUpdate(peer, (new CRC32, 0L))
          crc.update(part)
          sums(peer) = (crc, length + part.length)
          if (flag == 0) ended += 1
        }
        assert(sums.values.forall(_._2 == bytes))
        assert(sums.values.map(_._1.getValue).toSet ==
          senders.map(sender => result(sender._2)).toSet)
        soon(run.waitingBytes._1 == 0)
      }
      senders.foreach(_._1.close())
    }
  }

  test(
    "a message of 100 MiB arrives at a peer, in pieces, and one that reads nothing holds little") {
    val bytes = 100 << 20
    withClient(Hub.Limits(waitingBytes = 1 << 20)) { (hub, client) =>
      val run = hub.run("run").get
      Using.resource(join(hub, HubSocket.Peer)) { peer =>
        assert(client.heard() == ((1, 3, "")))
        val sent = inBackground(sendMessage(client, bytes, seed = 1, to = Some(1)))
        soon(run.waitingBytes._2 >= (1 << 20))
        Thread.sleep(200)
        assert(run.waitingBytes._2 < (1 << 20) + (65 << 10))
        assert(!sent.isDone)
        val crc = new CRC32
        assert(peer.message().map { part => crc.update(part); part.length }.sum == bytes)
        assert(crc.getValue == result(sent))
        soon(run.waitingBytes._2 == 0)
      }
    }
  }

  test("a file of a checkpoint that cannot be read to its end ends with the reason") {
    TemporaryFolder { path =>
      Files.createDirectory(path.resolve("checkpoint-7"))
      // Reads fail: nothing is at its first address. For that Hadoop has an Error.
      Files.createSymbolicLink(path.resolve("checkpoint-7/rank-2"), Path.of("/proc/self/mem"))
      withFile(CheckpointFolder.of(s"file://$path", new Configuration, isWritten = false)) { rank =>
        val (flag, text) = Iterator.continually(rank.piece()).dropWhile(_._1 == 1).next()
        assert(flag == 2 && new String(text, UTF_8).contains("Input/output error"))
      }
    }
  }

  test("a file system may need a deep stack") {
    TemporaryFolder { path =>
      Files.createDirectory(path.resolve("checkpoint-7"))
      Files.write(path.resolve("checkpoint-7/rank-2"), "state".getBytes(UTF_8))
      def depth(left: Int): Int = if (left == 0) 0 else 1 + depth(left - 1)
      val deep = new FilterFileSystem(FileSystem.getLocal(new Configuration).getRaw) {
        override def open(file: HadoopPath, buffer: Int): FSDataInputStream = {
          assert(depth(4000) == 4000)
          super.open(file, buffer)
        }
      }
      withFile(new CheckpointFolder(new HadoopPath(s"file://$path"), deep))(rank =>
        assert(new String(rank.piece()._2, UTF_8) == "state"))
    }
  }

  /** Sends random bytes; returns their checksum. */
  private def sendMessage(from: HubSocket, bytes: Int, seed: Int, to: Option[Int] = None): Long = {
    val random = new Random(seed)
    val crc = new CRC32
    var left = bytes
    while (left > 0) {
      val part = new Array[Byte](math.min(left, 1 << 20))
      random.nextBytes(part)
      crc.update(part)
      left -= part.length
      to.foreach(from.out.writeInt)
      from.send(if (left == 0) 0 else 1, part)
    }
    from.out.flush()
    crc.getValue
  }

  test("a piece that is too long, or none, ends its connection only") {
    withClient() { (hub, client) =>
      Seq((0, (1 << 20) + 1), (0, -1), (2, 0), (9, 0)).zipWithIndex.foreach {
        case ((flag, length), i) =>
          Using.resource(join(hub, HubSocket.Peer)) { peer =>
            peer.out.writeByte(flag)
            peer.out.writeInt(length)
            peer.out.flush()
            assert(client.heard() == ((i + 1, 3, "")))
            assert(client.heard() == ((i + 1, 2, "")))
            assert(peer.isEnded)
          }
      }
    }
  }

  test("if the client dies, its peers get what it has sent, and then the end; the hub ends, too") {
    withHub() { hub =>
      hub.open("run", key)
      val client = join(hub, HubSocket.Client)
      Using.resource(join(hub, HubSocket.Peer)) { one =>
        Using.resource(join(hub, HubSocket.Peer)) { two =>
          soon(client.heard()._1 == 2)
          client.sayTo(1, "last words")
          client.close()
          assert(one.heardText() == "last words")
          assert(one.isEnded && two.isEnded)
          assert(hub.run("run").isEmpty && hub.open("run", key).isEmpty)
          soon {
            try { connect(hub).close(); false }
            catch { case _: SocketException => true }
          }
        }
      }
    }
  }

  test("closing a run ends its connections, and not those of another; closing again does nothing") {
    withHub() { hub =>
      hub.open("a", key)
      hub.open("b", otherKey)
      val (clientA, peerA) = (join(hub, HubSocket.Client, "a"), join(hub, HubSocket.Peer, "a"))
      val clientB = join(hub, HubSocket.Client, "b", otherKey)
      val peerB = join(hub, HubSocket.Peer, "b", otherKey).say("b")
      assert(clientA.heard() == ((1, 3, "")))
      hub.close("a")
      hub.close("a")
      hub.close("c")
      assert(clientA.isEnded && peerA.isEnded)
      assert(Seq(clientB.heard(), clientB.heard()).last == ((1, 0, "b")))
      Using.resource(connect(hub))(late =>
        assert(late.greet(HubSocket.Peer, "a", new Array[Byte](32))._1 == 1))
      hub.close("b")
      assert(peerB.isEnded)
      Seq(clientA, clientB, peerA, peerB).foreach(_.close())
    }
  }

  test("peers that never read do not outlive their run for long") {
    withHub() { hub =>
      hub.open("run", key)
      val client = join(hub, HubSocket.Client)
      Using.resource(join(hub, HubSocket.Peer)) { _ =>
        client.heard()
        sendMessage(client, 30 << 20, 1, Some(1))
        client.close()
        soon(hub.run("run").isEmpty)
        soon(!threadNames.exists(_ == "supply-hub"))
      }
    }
  }

  test("a peer that takes nothing while the client cannot send is ended, and the client is told") {
    withClient(Hub.Limits(waitingBytes = 1 << 20, secondsOfPeers = 1)) { (hub, client) =>
      Using.resource(join(hub, HubSocket.Peer)) { _ =>
        assert(client.heard() == ((1, 3, "")))
        Using.resource(join(hub, HubSocket.Peer)) { two =>
          assert(client.heard() == ((2, 3, "")))
          val sent = inBackground(sendMessage(client, 100 << 20, 1, Some(1)))
          val (itself, _, told) = client.heard()
          assert(itself == 0 && told.contains("has taken no message for 1 s"))
          assert(client.heard() == ((1, 2, "")))
          result(sent)
          client.sayTo(2, "hello two")
          assert(two.heardText() == "hello two")
          soon(hub.run("run").get.waitingBytes._2 == 0)
        }
      }
    }
  }

  test("a run that never has a client is closed after a time") {
    withHub(Hub.Limits(secondsAlone = 0.5)) { hub =>
      hub.open("run", key)
      soon(hub.run("run").isEmpty)
    }
  }

  test("a client that polls keeps the run of its output, which its terminal may not take") {
    withHub(Hub.Limits(secondsAlone = 3)) { hub =>
      val run = hub.open("run", key).get
      Seq("run-output", "other", "other-output").foreach(hub.open(_, key))
      soon { run.poll(0, 1); hub.run("other").isEmpty && hub.run("other-output").isEmpty }
      assert(hub.run("run").isDefined && hub.run("run-output").isDefined)
      soon(hub.run("run").isEmpty && hub.run("run-output").isEmpty)
    }
  }

  test(
    "a name whose run is being closed is free: for peers there is no run, and a client opens another") {
    withHub() { hub =>
      val closing = hub.open("run", key).get
      hub.open("other", key)
      closing.close()
      Using.resource(connect(hub))(late =>
        assert(late.greet(HubSocket.Peer, "run", new Array[Byte](32))._1 == 1))
      // It may have another key.
      assert(hub.open("run", otherKey).exists(_ ne closing))
      Using.resource(join(hub, HubSocket.Client, key = otherKey))(
        assertHeard(_, join(hub, HubSocket.Peer, key = otherKey), "hello"))
    }
  }

  test("all runs together hold a part of the memory") {
    withHub(Hub.Limits(allBytes = 4 << 20)) { hub =>
      val names = (1 to 8).map(i => s"run $i")
      val runs = names.map(hub.open(_, key).get)
      val peers = names.map(join(hub, HubSocket.Peer, _))
      val sending = peers.map(peer => inBackground(sendMessage(peer, 30 << 20, seed = 1)))
      soon(runs.forall(_.waitingBytes._1 >= (256 << 10)))
      Thread.sleep(200)
      assert(runs.map(_.waitingBytes._1).sum < 8 * ((256 + 65) << 10) && !sending.exists(_.isDone))
      // What is left may hold more, when others have ended.
      names.tail.foreach(hub.close)
      runs.head.poll(1, 1)
      soon(runs.head.waitingBytes._1 >= (1 << 20))
      peers.foreach(_.close())
    }
  }

  test("after many polls each answer has the pieces of some time, but a full one comes at once") {
    withHub(Hub.Limits(waitingBytes = 1 << 20, secondsOfPolls = 100000)) { hub =>
      val run = hub.open("run", key).get
      Using.resource(join(hub, HubSocket.Peer)) { peer =>
        // In the first ones a piece is there at once.
        (1 to HubRun.AtOnce).foreach(_ => assert(run.poll(0, 60000).nonEmpty))
        val one = inBackground(run.poll(0, 60000))
        (1 to 20).foreach(i => peer.say(s"piece $i"))
        Thread.sleep(200)
        assert(!one.isDone)
        peer.send(0, new Array[Byte](1 << 20))
        peer.out.flush()
        assert(new String(result(one), UTF_8).contains("piece 20"))
        val other = inBackground(run.poll(1, 60000))
        hub.close("run")
        result(other)
      }
    }
  }

  test("if there is no thread to write to a peer, its connection ends, and nothing else") {
    var fails = false
    val run = new HubRun("run", key, 1, () => 1 << 20,
      work =>
        if (fails) throw new OutOfMemoryError("unable to create native thread")
        else new Thread(work).start(),
      _ => ())
    Using.resource(new ServerSocket(0, 2, loopback)) { server =>
      def peer() = {
        val before = run.poll(0, 1).length
        val peer = new HubSocket(loopback, server.getLocalPort)
        val connection = new Connection(server.accept(), None)
        inBackground {
          try run.servePeer(connection)
          finally connection.close()
        }
        soon(run.poll(0, 1).length > before)
        peer
      }
      val (one, two) = (peer(), peer())
      def send(number: Int) = {
        val all = new ByteArrayOutputStream
        (1 to 2).foreach(to =>
          Piece(to, Piece.Last, s"$number".getBytes(UTF_8)).write(new DataOutputStream(all)))
        // A client of Spark Connect repeats a call that has failed.
        (1 to 2).foreach(_ => run.send(number.toLong, all.toByteArray))
      }
      send(1)
      Seq(one, two).foreach(peer => assert(peer.heardText() == "1"))
      soon(run.waitingBytes._2 == 0)
      fails = true
      val toOne = new ByteArrayOutputStream
      Piece(1, Piece.Last, Array[Byte](7)).write(new DataOutputStream(toOne))
      run.send(2, toOne.toByteArray)
      assert(one.isEnded && run.waitingBytes._2 == 0)
      fails = false
      send(3)
      assert(two.heardText() == "3")
      Seq(one, two).foreach(_.close())
    }
  }

  test(
    "a connection whose node acknowledges nothing is dead, one that waits for a process is not") {
    def dead(line: String) = Connection.dead(0x88b8, line)
    def line(ends: String, timer: String, times: String, more: String = "", asked: Int = 0) =
      s"   1: $ends 01 00000011:00000000 $timer:00000AF0 $times     0        $asked 123 3 ff 5 $more"
    val four = "0100007F:88B8 0500000A:A0F2"
    val mapped = "0000000000000000FFFF00000100007F:88B8 0000000000000000FFFF00000500000A:A0F2"
    val six = "00000000000000000000000001000000:88B8 B80D0120000000000000000005000000:A0F2"
    Seq(four, mapped).foreach(ends =>
      assert(dead(line(ends, "01", "00000008")).contains(new InetSocketAddress("10.0.0.5",
            0xa0f2))))
    assert(dead(line(six, "01", "0000000F", "18 0 0 1 -1")).contains(
        new InetSocketAddress("2001:db8::5", 0xa0f2)))
    assert(dead(line(four, "04", "00000000", asked = 8)).isDefined)
    // Few times; a full window, of which the node answers; a silent one; another port; none.
    Seq(line(four, "01", "00000007"), line(four, "04", "00000000", asked = 7),
      line(four, "02", "00000000"),
      line("0100007F:88B9 0500000A:A0F2", "01", "00000008"), "",
      "  sl  local_address rem_address   st tx_queue")
      .foreach(text => assert(dead(text).isEmpty, text))
    withClient() { (hub, client) =>
      val peer = join(hub, HubSocket.Peer).say("hello")
      assert(Seq(client.heard(), client.heard()).last == ((1, 0, "hello")))
      assert(Connection.dead(hub.port).isEmpty)
      val ends: Set[SocketAddress] = Set(client.local)
      hub.closeDead(ends)
      assert(client.isEnded)
      soon(hub.run("run").isEmpty)
      peer.close()
    }
  }

  test("many peers at once") {
    withClient() { (hub, client) =>
      val peers = (1 to 300).map(i => inBackground(join(hub, HubSocket.Peer).say(s"peer $i")))
      val said = Iterator.continually(client.heard()).filter(_._2 == 0).take(300).toSeq
      assert(said.map(_._3).toSet == (1 to 300).map(i => s"peer $i").toSet)
      peers.foreach(result(_).close())
    }
  }

  test("the hub has an address of IPv6") {
    withClient(bind = InetAddress.getByName("::1"))((hub, client) =>
      assertHeard(client, join(hub, HubSocket.Peer), "by IPv6"))
  }

  private def threadNames: Set[String] = {
    val threads = new Array[Thread](Thread.activeCount() * 2)
    threads.take(Thread.enumerate(threads)).map(_.getName).toSet
  }
}
