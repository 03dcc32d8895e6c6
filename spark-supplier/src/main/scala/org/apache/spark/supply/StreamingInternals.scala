package org.apache.spark.supply

import java.lang.ref.WeakReference

import scala.language.reflectiveCalls
import scala.util.Try

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

  /**
   * Calls `started` of `sink` once, in the thread of the query that writes to it, when it starts. Nothing else keeps
   * the sink: Spark may refuse to start its query, and tells nobody.
   */
  def whenStarted[S <: Sink](queries: StreamingQueryManager, sink: S)(
      started: (S, StreamingQuery) => Unit): Unit = {
    val waiting = new WeakReference(sink)
    queries.addListener(new StreamingQueryListener {
      override def onQueryStarted(event: QueryStartedEvent): Unit = {
        val (query, known) = (queries.get(event.id), waiting.get)
        val isStarting = query != null && known != null && (executionOf(query).sink eq known)
        if (isStarting || known == null) queries.removeListener(this)
        if (isStarting) started(known, query)
      }
      override def onQueryProgress(event: QueryProgressEvent): Unit = ()
      override def onQueryTerminated(event: QueryTerminatedEvent): Unit = ()
    })
  }

  private[supply] def metricsOf(query: StreamingQuery): Source = executionOf(query).streamMetrics
}

/**
 * Calls `ended` when the query has ended, before its `stop()` and `awaitTermination()` return: Spark still runs
 * then. It registers a metric of the query, the number of its last batch, because Spark removes these in the query's
 * thread when the query has ended. It also removes them with a query whose name is, or begins, this one's: then the
 * metric comes back.
 */
final class StreamingQueryEnd(query: StreamingQuery, lastBatch: () => Long)(ended: => Unit)
    extends MetricRegistryListener.Base {
  private val metrics = SparkEnv.get.metricsSystem
  private val registry = {
    val field = classOf[MetricsSystem].getDeclaredField("registry")
    field.setAccessible(true)
    field.get(metrics).asInstanceOf[MetricRegistry]
  }
  private val name = MetricRegistry.name(
    metrics.buildRegistryName(StreamingInternals.metricsOf(query)), "supply", "lastBatch")
  private val gauge: Gauge[Long] = () => lastBatch()

  registry.addListener(this)
  register()

  override def onGaugeRemoved(removed: String): Unit = if (removed == name) {
    if (query.isActive) register()
    else {
      registry.removeListener(this)
      ended
    }
  }

  /** A query of the same name in another session may have it: its end is told to both. */
  private def register(): Unit = {
    Try(registry.register(name, gauge))
    ()
  }
}
