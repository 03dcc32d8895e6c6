package supply.api

import java.net.{ConnectException, InetAddress}

import org.apache.spark.{SparkConf, SparkContext}
import org.scalatest.funsuite.AnyFunSuite

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
    HubSocket.of(InetAddress.getByName(words(0)), words(1).toInt, role, run, key)
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
}
