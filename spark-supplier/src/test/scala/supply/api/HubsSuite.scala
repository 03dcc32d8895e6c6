package supply.api

import java.io.File
import java.net.{ConnectException, InetAddress, ServerSocket}
import java.nio.file.Files
import java.security.{KeyStore, MessageDigest}

import scala.util.{Random, Try, Using}

import org.apache.spark.{SparkConf, SparkContext}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, Deadline}
import supply.results.SessionResults
import supply.net.Tls
import supply.run.Hubs
import supply.task.SessionEnd
import supply.testing.{HubSocket, WithSpark}

class HubsSuite extends AnyFunSuite with WithSpark {
  private val key = Array.tabulate[Byte](32)(_.toByte)

  private def withSpark(settings: (String, String)*)(test: SparkContext => Unit): Unit = {
    val sc = new SparkContext(new SparkConf().setMaster("local[1]").setAppName("hubs")
        .set("spark.ui.enabled", "false").set("spark.log.level", "OFF").setAll(settings))
    try test(sc)
    finally sc.stop()
  }

  private def join(opened: String, role: Int, run: String) = {
    val words = opened.split(" ")
    val port = words(1).stripSuffix("/tls")
    HubSocket.of(InetAddress.getByName(words(0)), port.toInt, role, run, key,
      if (port == words(1)) None else Some("TLSv1.3"))
  }

  test("runs of one JVM have one hub, which ends with the last of them") {
    withSpark() { sc =>
      val opened = Hubs.open(sc, "a", key)
      assert(opened.matches("127\\.0\\.0\\.1 \\d+ 127\\.0\\.0\\.1"))
      assert(Hubs.open(sc, "a", key) == opened && Hubs.open(sc, "b", key) == opened)
      val (a, b) = (join(opened, HubSocket.Peer, "a"), join(opened, HubSocket.Peer, "b"))
      Hubs.close("a")
      Hubs.close("a")
      assert(a.isEnded)
      join(opened, HubSocket.Peer, "b").close()
      Hubs.close("b")
      assert(b.isEnded)
      assertThrows[ConnectException](join(opened, HubSocket.Peer, "b"))
      Seq(a, b).foreach(_.close())
      join(Hubs.open(sc, "a", key), HubSocket.Client, "a").close()
    }
  }

  test("runs end with Spark, and the next Spark has a hub of its own") {
    var last = Option.empty[HubSocket]
    (1 to 2).foreach { _ =>
      withSpark() { sc =>
        last = Some(join(Hubs.open(sc, "run", key), HubSocket.Peer, "run"))
      }
      assert(last.exists(_.isEnded))
      last.foreach(_.close())
    }
  }

  test("nothing of an application is kept when Spark has stopped") {
    def areEmpty = Seq(Hubs.isEmpty, TurnCalls.turns.isEmpty, Starters.driver.isEmpty,
      SessionResults.current.isEmpty, SessionEnd.current.isEmpty)
    (1 to 2).foreach { _ =>
      withSpark() { sc =>
        Hubs.open(sc, "run", key)
        TurnCalls.turns(sc)
        Starters.driver(sc)
        SessionResults.reading(sc)
        assert(areEmpty == Seq.fill(5)(false))
      }
      assert(new Deadline(10).poll(10)(areEmpty.forall(identity)), areEmpty)
    }
  }

  private val authentication =
    Seq("spark.authenticate" -> "true", "spark.authenticate.secret" -> "secret")

  test("connections have TLS if Spark's own are encrypted, or a setting says so") {
    def usesTls(settings: (String, String)*) = {
      var isTls = false
      withSpark(settings: _*) { sc =>
        val opened = Hubs.open(sc, "run", key)
        isTls = opened.matches("127\\.0\\.0\\.1 \\d+/tls 127\\.0\\.0\\.1")
        join(opened, HubSocket.Peer, "run").close()
      }
      isTls
    }
    val crypto = authentication :+ ("spark.network.crypto.enabled" -> "true")
    assert(!usesTls() && !usesTls(authentication: _*))
    assert(usesTls(crypto: _*))
    assert(usesTls(authentication :+ ("spark.authenticate.enableSaslEncryption" -> "true"): _*))
    assert(!usesTls(crypto :+ ("spark.supply.hub.tls" -> "false"): _*))
    assert(usesTls("spark.supply.hub.tls" -> "true"))
  }

  test("the key store of spark.ssl.rpc is the hub's, too") {
    val folder = Files.createTempDirectory("supply-hub-keys")
    val file = folder.resolve("keys")
    try {
      val keytool = new File(System.getProperty("java.home"), "bin/keytool")
      Tls.makeKey(file, "secret", keytool)
      val settings = Seq("spark.ssl.rpc.enabled" -> "true", "spark.supply.hub.tls" -> "true",
        "spark.ssl.rpc.keyStore" -> file.toString, "spark.ssl.rpc.keyStoreType" -> "PKCS12",
        "spark.ssl.rpc.keyStorePassword" -> "secret")
      withSpark(settings: _*) { sc =>
        val peer = join(Hubs.open(sc, "run", key), HubSocket.Peer, "run")
        val keys = KeyStore.getInstance("PKCS12")
        Using.resource(Files.newInputStream(file))(keys.load(_, "secret".toCharArray))
        assert(peer.certificate.sameElements(MessageDigest.getInstance("SHA-256").digest(
              keys.getCertificate("hub").getEncoded)))
        peer.close()
      }
    } finally {
      Files.deleteIfExists(file)
      Files.delete(folder)
    }
  }

  private def portOf(opened: String) = opened.split(" ")(1).toInt

  test("without a setting the next hub of a session has the port of the last one, if it is free") {
    withSpark() { sc =>
      val port = portOf(Hubs.open(sc, "one", key))
      Hubs.close("one")
      assert(portOf(Hubs.open(sc, "two", key)) == port)
      Hubs.close("two")
      Using.resource(new ServerSocket(port, 1, InetAddress.getByName("127.0.0.1")))(_ =>
        assert(portOf(Hubs.open(sc, "three", key)) != port))
    }
  }

  test("the hub takes the port that a setting names, or one after it, again and again") {
    // Not one of those that the kernel gives to other programs in between.
    val taken = Iterator.continually(10000 + Random.nextInt(10000)).flatMap(port =>
      Try(new ServerSocket(port, 1, InetAddress.getByName("127.0.0.1"))).toOption).next()
    val port = taken.getLocalPort
    def settings(retries: Int) =
      Seq("spark.supply.hub.port" -> port.toString, "spark.port.maxRetries" -> retries.toString)
    try {
      withSpark(settings(0): _*) { sc =>
        val text = intercept[ConfigException](Hubs.open(sc, "run", key)).getMessage
        assert(text.startsWith(
            s"the hub of the driver cannot listen at 127.0.0.1, from port $port to $port: set spark.supply.hub.port"))
        assert(text.contains("spark.port.maxRetries"))
      }
      withSpark(settings(16): _*) { sc =>
        val found = portOf(Hubs.open(sc, "run", key))
        assert(found > port && found <= port + 16)
      }
    } finally taken.close()
    withSpark(settings(0): _*) { sc =>
      (1 to 20).foreach { i =>
        val opened = Hubs.open(sc, s"run $i", key)
        assert(portOf(opened) == port)
        val client = join(opened, HubSocket.Client, s"run $i")
        // Its hub ends in another thread, at about the time when the next run asks for the port.
        if (i % 2 == 0) Hubs.close(s"run $i")
        client.close()
        if (i % 2 == 1) assert(new Deadline(60).poll(1)(Hubs.find(s"run $i").isEmpty))
      }
    }
    // No hub listens for an application that takes no endpoint for it.
    withSpark(settings(0): _*) { sc =>
      sc.stop()
      assertThrows[Exception](Hubs.open(sc, "run", key))
      new ServerSocket(port, 1, InetAddress.getByName("127.0.0.1")).close()
    }
    Seq("-1", "65536").foreach(wrong =>
      withSpark("spark.supply.hub.port" -> wrong) { sc =>
        assert(intercept[ConfigException](Hubs.open(sc, "run", key)).getMessage ==
          s"spark.supply.hub.port is $wrong, and no port")
      })
  }
}
