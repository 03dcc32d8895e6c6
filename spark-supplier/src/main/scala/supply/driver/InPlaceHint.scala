package supply.driver

import supply.sources.lmdb.LmdbRDD

/** Says that a run copies data that its ranks could read in place. */
private[supply] object InPlaceHint {
  /** `option`: what makes them read it there. */
  def show(lmdb: LmdbRDD, option: String): Unit = if (lmdb.canBeReadInPlace)
    Progress.note(s"the ranks could read this LMDB in place, without copies: use $option")
}
