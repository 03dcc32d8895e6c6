package org.apache.spark.supply

import java.util.UUID

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.util.{RpcUtils, Utils}

import supply.core.DriverCalls

/**
 * Answers the questions of tasks on the driver, one at a time, until it is closed. No other
 * endpoint of this driver may have its name. `ended` runs when it is closed, or Spark stops.
 *
 * Public API: an accumulator has no answer. A plugin's `PluginContext.ask` has one, but plugins
 * must be configured before Spark starts, which a DataFrame's writer cannot do.
 */
final class DriverEndpoint(sc: SparkContext, name: String, ended: () => Unit = () => ())(
    answer: PartialFunction[Any, Any]) extends AutoCloseable {
  private val env = sc.env.rpcEnv
  private val endpoint = env.setupEndpoint(
    name,
    new ThreadSafeRpcEndpoint {
      override val rpcEnv: RpcEnv = env
      override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
        case question: Array[Byte] =>
          context.reply(EndpointCalls.bytes(answer(EndpointCalls.read[Any](question))))
      }
      override def onStop(): Unit = ended()
    })

  /** For the tasks. */
  def calls: DriverCalls = new EndpointCalls(name)

  override def close(): Unit = env.stop(endpoint)
}

/** One for the application, which is forgotten when Spark stops: it would keep the SparkContext in memory. */
final class OfApplication[A](make: SparkContext => A) {
  private var current = Option.empty[(SparkContext, A)]

  def isEmpty: Boolean = synchronized(current.isEmpty)

  def apply(sc: SparkContext): A = synchronized {
    if (!current.exists(_._1 eq sc)) {
      val made = make(sc)
      new DriverEndpoint(sc, s"supply-application-${UUID.randomUUID()}", () => forget(sc))(
        PartialFunction.empty)
      current = Some(sc -> made)
    }
    current.get._2
  }

  private def forget(sc: SparkContext): Unit = synchronized {
    current = current.filter(_._1 ne sc)
  }
}

private final class EndpointCalls(name: String) extends DriverCalls {
  /** Looking it up is a message, too. */
  @transient private lazy val driver =
    RpcUtils.makeDriverRef(name, SparkEnv.get.conf, SparkEnv.get.rpcEnv)

  override def ask[A](question: java.io.Serializable): A =
    EndpointCalls.read[A](driver.askSync[Array[Byte]](EndpointCalls.bytes(question)))
}

/** Messages travel as bytes: Spark's class loader may not know the user's jar, this one does. */
private object EndpointCalls {
  def bytes(message: Any): Array[Byte] = Utils.serialize(message)
  def read[A](message: Array[Byte]): A = Utils.deserialize[A](message, getClass.getClassLoader)
}
