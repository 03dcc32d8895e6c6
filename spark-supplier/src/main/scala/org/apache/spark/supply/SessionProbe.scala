package org.apache.spark.supply

import java.net.ConnectException

import scala.util.control.NonFatal

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.rpc.RpcEnv
import org.apache.spark.util.RpcUtils

import supply.core.Deadline

/**
 * Asks the driver's endpoint `name` when this executor's JVM ends. The executor may have ended its
 * own connections by then, so this makes one of its own. Make it while the executor runs.
 *
 * Public API: an executor plugin is notified of the end, but plugins must be configured before Spark
 * starts, and do not learn whether the session ends or only this executor.
 */
final class SessionProbe(name: String) {
  private val security = SparkEnv.get.securityManager
  private val host = SparkEnv.get.rpcEnv.address match {
    case null => SparkEnv.get.blockManager.blockManagerId.host
    case address => address.host
  }
  private val conf = SparkEnv.get.conf.clone()
    .set("spark.rpc.lookupTimeout", SessionProbe.Limit)
    .set("spark.rpc.askTimeout", SessionProbe.Limit)
    .set("spark.rpc.io.connectionTimeout", SessionProbe.Limit)
    .set("spark.rpc.io.maxRetries", "0")

  /**
   * The answer to `question`; None: the driver is gone. Throws the last error if that is not known:
   * the driver may be suspended, or the network may be down. A driver that ends just now closes the
   * connection; the next attempt finds nobody.
   */
  def ask[A](question: java.io.Serializable): Option[A] = {
    val deadline = new Deadline(SessionProbe.LimitSeconds)
    val answer = deadline.find(SessionProbe.RetryMillis) {
      try Some(Right(Some(attempt[A](question))))
      catch {
        case NonFatal(e) if SessionProbe.saysGone(e) => Some(Right(None))
        case NonFatal(e) => if (deadline.passed) Some(Left(e)) else None
      }
    }
    answer.get.fold(throw _, identity)
  }

  private def attempt[A](question: java.io.Serializable): A = {
    val env = RpcEnv.create("supply-session", host, 0, conf, security, clientMode = true)
    try {
      val driver = RpcUtils.makeDriverRef(name, conf, env)
      EndpointCalls.read[A](driver.askSync[Array[Byte]](EndpointCalls.bytes(question)))
    } finally env.shutdown()
  }
}

object SessionProbe {
  // A standalone worker kills an executor 10 seconds after it asked it to end.
  private final val LimitSeconds = 4
  private final val Limit = s"${LimitSeconds}s"
  private final val RetryMillis = 100L

  /** Nobody listens at the driver's port, or what listens there is no such driver. */
  private def saysGone(e: Throwable): Boolean =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).exists {
      case refused: ConnectException => String.valueOf(refused.getMessage).contains("refused")
      // A class that only Spark's own package can name.
      case other => other.getClass.getSimpleName == "RpcEndpointNotFoundException"
    }

  /** Whether this JVM is an executor, and not the driver. */
  def isExecutor: Boolean = SparkEnv.get.executorId != SparkContext.DRIVER_IDENTIFIER
}
