package supply.driver

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.supply.{StreamingInternals, StreamingQueryEnd}

import supply.core.SourceException
import supply.data.Source
import supply.executor.SupplySettings

/** Starts and ends the [[SupplyStream]] of the streaming query that writes to `sink`. */
private[supply] final class QueryStream(context: SQLContext, settings: SupplySettings, sink: Sink) {
  // If the files are wrong, the start of the query fails.
  private val hosts = settings.readHosts()
  private var stream = Option.empty[(SupplyStream, StreamingQueryEnd)]
  @volatile private var lastBatch = -1L

  StreamingInternals.whenStarted(context.streams, sink)(start)

  private def start(query: StreamingQuery): Unit = {
    // It signals the ranks from here on, so the end must be observed first.
    lazy val started = new SupplyStream(context.sparkContext, settings, hosts, query.id)
    val end = new StreamingQueryEnd(query, () => lastBatch)(query.exception match {
      case Some(failure) => started.fail(Option(failure.getCause).getOrElse(failure))
      case None => started.end()
    })
    stream = Some(started -> end)
  }

  /** As [[SupplyStream.batch]]. */
  def batch(number: Long)(open: => Source): Unit = {
    val (started, end) = stream.getOrElse(throw new SourceException(
        "Spark has not said when this query starts and ends: see the driver's log"))
    end.renew()
    started.batch(number)(open)
    lastBatch = number
  }
}
