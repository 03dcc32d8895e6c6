package org.apache.spark.supply

import scala.language.reflectiveCalls

import com.codahale.metrics.{Gauge, MetricRegistry, MetricRegistryListener}
import org.apache.spark.SparkEnv
import org.apache.spark.metrics.MetricsSystem
import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryListener, StreamingQueryManager}
import org.apache.spark.sql.streaming.StreamingQueryListener._

/**
 * When a streaming query starts and ends: in its own thread, which a sink is called in only for
 * batches.
 */
object StreamingInternals {

  // Spark 3.5 and 4.1 have its class in different packages.
  private type Execution = { def sink: AnyRef; def streamMetrics: Source }

  private def executionOf(query: StreamingQuery): Execution =
    query.asInstanceOf[{ def streamingQuery: Execution }].streamingQuery

  /** Calls `started` once, when the query starts that writes to this sink. */
  def whenStarted(queries: StreamingQueryManager, sink: Sink)(
      started: StreamingQuery => Unit): Unit =
    queries.addListener(new StreamingQueryListener {
      override def onQueryStarted(event: QueryStartedEvent): Unit = {
        val query = queries.get(event.id)
        if (query != null && (executionOf(query).sink eq sink)) {
          queries.removeListener(this)
          started(query)
        }
      }
      override def onQueryProgress(event: QueryProgressEvent): Unit = ()
      override def onQueryTerminated(event: QueryTerminatedEvent): Unit = ()
    })

  private[supply] def metricsOf(query: StreamingQuery): Source = executionOf(query).streamMetrics
}

/**
 * Calls `ended` once, when the query in whose thread this is made has come to its end, and before
 * `stop()` and `awaitTermination()` return to who may stop Spark next. Spark's own notice comes
 * later, in another thread. So this is a metric of the query, the number of its last batch: Spark
 * takes a query's metrics away where it ends.
 */
final class StreamingQueryEnd(query: StreamingQuery, lastBatch: () => Long)(ended: => Unit) {
  private val thread = Thread.currentThread()
  private val metrics = SparkEnv.get.metricsSystem
  private val registry = {
    val field = classOf[MetricsSystem].getDeclaredField("registry")
    field.setAccessible(true)
    field.get(metrics).asInstanceOf[MetricRegistry]
  }
  private val name = MetricRegistry.name(
    metrics.buildRegistryName(StreamingInternals.metricsOf(query)), "supply", "lastBatch")
  private val gauge: Gauge[Long] = () => lastBatch()

  registry.addListener(new MetricRegistryListener.Base {
    override def onGaugeRemoved(
        removed: String): Unit = if (removed == name && (Thread.currentThread() eq thread)) {
      registry.removeListener(this)
      ended
    }
  })
  renew()

  /**
   * Puts the metric back: a query whose name this one's begins with takes it along when it ends.
   */
  def renew(): Unit = synchronized {
    if (!registry.getGauges.containsKey(name)) registry.register(name, gauge)
    ()
  }
}
