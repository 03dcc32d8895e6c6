package supply.driver

import supply.sources.lmdb.LmdbRDD

/** Says that a run copies data that its ranks could read where it lies. */
private[supply] object InPlaceHint {
  /** `option` turns it on. */
  def show(lmdb: LmdbRDD, option: String): Unit = if (lmdb.canBeReadInPlace)
    Progress.note(s"the ranks could read this LMDB where it lies, without copies: $option")
}
