package supply.rows

import supply.source.Source

/**
 * A relation whose values ranks can have where they lie: what an extension's data source makes, and
 * a frame that does nothing but read it is supplied as. Columns are indexes in the relation's schema.
 */
private[supply] trait InPlaceRelation {
  /** Whether its reader asked for that. */
  def inPlace: Boolean

  /** These columns, where they lie. */
  def source(columns: IndexedSeq[Int]): Source

  /** Called before rows with these columns are copied, though they need not be. */
  def noteCopied(columns: IndexedSeq[Int]): Unit
}
