package supply.api

import java.io.File
import java.net.{ConnectException, InetAddress}
import java.nio.file.Files
import java.security.{KeyStore, MessageDigest}

import scala.util.Using

import org.apache.spark.{SparkConf, SparkContext}
import org.scalatest.funsuite.AnyFunSuite

import supply.run.HubTls
import supply.testing.HubSocket

class HubsSuite extends AnyFunSuite {
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
      HubTls.makeKey(file, "secret", keytool)
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
}
