package org.apache.spark.supply

import java.net.{InetAddress, ServerSocket}
import java.util.concurrent.TimeoutException

import org.apache.spark.SparkEnv
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.LocalSpark
import supply.testing.Background.{inBackground, result}

class SessionProbeSuite extends AnyFunSuite with LocalSpark {
  private val name = "probed"

  /** A probe of a driver that listens at `server`. */
  private def probeOf(server: ServerSocket): SessionProbe = {
    val conf = SparkEnv.get.conf
    val (host, port) = (conf.get("spark.driver.host"), conf.get("spark.driver.port"))
    conf.set("spark.driver.host", server.getInetAddress.getHostAddress)
      .set("spark.driver.port", server.getLocalPort.toString)
    try new SessionProbe(name)
    finally conf.set("spark.driver.host", host).set("spark.driver.port", port)
  }

  private def listen(): ServerSocket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress)

  test("a driver answers") {
    sc
    val endpoint = new DriverEndpoint(sc, name)({ case question: String => question.length })
    try assert(new SessionProbe(name).ask[Int]("four").contains(4))
    finally endpoint.close()
  }

  test("a driver without the endpoint is another session's") {
    sc
    assert(new SessionProbe("no-such-endpoint").ask[Int]("four").isEmpty)
  }

  test("nobody listens: the driver is gone") {
    sc
    val server = listen()
    val probe = probeOf(server)
    server.close()
    assert(probe.ask[Int]("four").isEmpty)
  }

  test("a driver that ends while it is asked is gone") {
    sc
    val server = listen()
    val probe = probeOf(server)
    val ending = inBackground {
      val connected = server.accept()
      connected.getInputStream.read()
      server.close()
      connected.close()
    }
    assert(probe.ask[Int]("four").isEmpty)
    result(ending)
  }

  test("whether a driver that does not answer is gone is not known") {
    sc
    val server = listen()
    try {
      intercept[TimeoutException](probeOf(server).ask[Int]("four"))
      ()
    } finally server.close()
  }
}
