package supply.datasource

import org.apache.spark.sql.{DataFrame, SQLContext}
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.supply.{StreamingInternals, StreamingQueryEnd}

import supply.core.SourceException
import supply.driver.{SupplySettings, SupplyStream}
import supply.pair.ConfigFiles
import supply.plan.Hostfile
import supply.sources.rows.{ListLengths, RowSource}

/** Where the rows of a streaming query go: each of its batches is an epoch of the ranks. */
private[supply] final class StreamSink(context: SQLContext, settings: SupplySettings) extends Sink {
  // What is wrong with the files is said where the query is started.
  private val hosts = Hostfile(settings.hosts, settings.ranks)
  if (settings.hosts.isEmpty)
    ConfigFiles(settings.mappedFiles, settings.namedPipes).read(settings.ranks)

  private var stream = Option.empty[(SupplyStream, StreamingQueryEnd)]
  @volatile private var lastBatch = -1L
  private val lists = new ListLengths

  StreamingInternals.whenStarted(context.streams, this)(started)

  private def started(query: StreamingQuery): Unit = {
    val started = new SupplyStream(context.sparkContext, settings, hosts, query.id)
    stream = Some(started -> new StreamingQueryEnd(query, () => lastBatch)(query.exception match {
      case Some(failure) => started.fail(Option(failure.getCause).getOrElse(failure))
      case None => started.end()
    }))
  }

  override def addBatch(batch: Long, data: DataFrame): Unit = {
    val (started, end) = stream.getOrElse(throw new SourceException(
        "this query does not tell when it starts and ends: see the driver's log"))
    end.renew()
    started.batch(batch)(RowSource.of(data, lists))
    lastBatch = batch
  }

  override def toString: String = s"supply[${settings.ranks} ranks]"
}
