package supply.datasource

import org.apache.spark.sql.{DataFrame, SQLContext}
import org.apache.spark.sql.execution.streaming.Sink

import supply.driver.QueryStream
import supply.executor.SupplySettings
import supply.sources.rows.ListLengths

/** Supplies the rows of a streaming query: each batch is an epoch of the ranks. */
private final class StreamSink(context: SQLContext, settings: SupplySettings) extends Sink {
  private val query = new QueryStream(context, settings, this)
  private val lists = new ListLengths

  override def addBatch(batch: Long, data: DataFrame): Unit =
    query.batch(batch)(FrameSource.of(data, lists))

  override def toString: String = s"supply[${settings.ranks} ranks]"
}
