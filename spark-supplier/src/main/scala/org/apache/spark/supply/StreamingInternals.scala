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
 * Tells when a streaming query starts and ends.
 *
 * Public API: Spark calls a sink for batches only. A `StreamingQueryListener` does not know the
 * sink of a query, and is called for the end in another thread, when the program may have stopped
 * Spark already.
 */
object StreamingInternals {
  // The class lies in different packages in Spark 3.5 and 4.1.
  private type Execution = { def sink: AnyRef; def streamMetrics: Source }

  private def executionOf(query: StreamingQuery): Execution =
    query.asInstanceOf[{ def streamingQuery: Execution }].streamingQuery

  /** Calls `started` once, in the thread of the query that writes to `sink`, when it starts. */
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
 * Calls `ended` once when the query ends, before its `stop()` and `awaitTermination()` return: Spark
 * still runs then. Make it in the query's thread. It registers a metric of the query, the number of
 * its last batch, because Spark removes these when the query ends, and `ended` is called by that.
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

  /** Adds the metric again: Spark removes it with a query whose name begins with this one's. */
  def renew(): Unit = synchronized {
    if (!registry.getGauges.containsKey(name)) registry.register(name, gauge)
    ()
  }
}
