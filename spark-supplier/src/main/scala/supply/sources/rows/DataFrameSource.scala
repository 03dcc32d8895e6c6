package supply.sources.rows

import supply.data.{PartitionSizes, Source}
import supply.protocol.Schema

/** The columns of a DataFrame as those of blocks. */
private[rows] abstract class DataFrameSource(
    private[rows] val columns: IndexedSeq[RowColumn],
    @transient override val partitionSizes: Option[PartitionSizes]) extends Source {
  override def schema: Schema = Schema(columns.map(_.column))

  /** The widest column. Text counts as wider than any number, and bytes as wider than text. */
  override def mainColumn: Option[Int] = {
    val weights = columns.map { column =>
      if (column.width > 0) column.width
      else if (column.column.format == "z") DataFrameSource.BytesLength
      else DataFrameSource.TextLength
    }
    if (weights.isEmpty) None
    else Some(weights.indexOf(weights.max)).filter(weights(_) > DataFrameSource.SmallBytes)
  }
}

private object DataFrameSource {
  private final val SmallBytes = 16
  private final val TextLength = 256
  private final val BytesLength = TextLength + 1
}
