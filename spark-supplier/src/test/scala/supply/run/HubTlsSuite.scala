package supply.run

import java.io.{File, InputStream, OutputStream}
import java.net.ServerSocket
import java.nio.charset.StandardCharsets.US_ASCII
import java.nio.file.Files

import scala.util.Using

import supply.core.ConfigException
import supply.net.Tls
import supply.testing.Background.inBackground
import supply.testing.{HubSocket, LongTest}

class HubTlsSuite extends HubTests(Some("TLSv1.3")) {
  /** `make test` has these without TLS, in HubSuite. */
  private val alsoWithoutTls = testNames -
    "peers and a client send each other messages, and the client sees peers come and go"

  override def tags: Map[String, Set[String]] =
    super.tags ++ alsoWithoutTls.map(_ -> Set(LongTest.name))

  test("a peer may have TLS 1.2") {
    withClient()((hub, client) =>
      assertHeard(client,
        HubSocket.of(loopback, hub.port, HubSocket.Peer, "run", key, Some("TLSv1.2")),
        "by TLS 1.2"))
  }

  test("a connection without TLS gets no answer of the hub") {
    withHub() { hub =>
      hub.open("run", key)
      Using.resource(new HubSocket(loopback, hub.port)) { peer =>
        peer.out.write("SUPPLYH1".getBytes(US_ASCII))
        peer.out.flush()
        assert(Iterator.continually(peer.in.read()).takeWhile(_ >= 0).size < 10)
      }
    }
  }

  test("a proof that passes somebody in between, who has another certificate, is none") {
    withHub() { hub =>
      hub.open("run", key)
      Using.resource(new ServerSocket(0, 1, loopback)) { server =>
        val between = inBackground {
          val toPeer = Tls.makeSelfSigned().over(server.accept())
          val toHub = new HubSocket(loopback, hub.port, Some("TLSv1.3"))
          val back = inBackground(pass(toHub.in, toPeer.getOutputStream))
          pass(toPeer.getInputStream, toHub.out)
          back
        }
        Using.resource(new HubSocket(loopback, server.getLocalPort, Some("TLSv1.3"))) { peer =>
          val own = new Array[Byte](32)
          val (status, theirs) = peer.greet(HubSocket.Peer, "run", own)
          assert(status == 0)
          val proof =
            HubSocket.hmac(key, "peer".getBytes(US_ASCII), theirs, own, peer.certificate)
          peer.out.write(proof)
          peer.out.flush()
          assert(peer.isEnded)
        }
        between.cancel(true)
      }
    }
  }

  private def pass(in: InputStream, out: OutputStream): Unit =
    try Iterator.continually(in.read()).takeWhile(_ >= 0).foreach { byte =>
        out.write(byte)
        out.flush()
      }
    finally {
      in.close()
      out.close()
    }

  test("without keytool, the error says what to set") {
    val file = Files.createTempDirectory("supply-keytool").resolve("key")
    Seq(new File("/nonexistent/keytool"), new File("/bin/false")).foreach { keytool =>
      val text = intercept[ConfigException](Tls.makeKey(file, "secret", keytool)).getMessage
      assert(text.startsWith(s"$keytool makes no key for TLS at the hub ("))
      assert(text.contains("spark.ssl.rpc.keyStore") && text.contains("spark.supply.hub.tls"))
    }
    Files.delete(file.getParent)
  }
}
