package supply.driver

import supply.sources.lmdb.LmdbRDD

/** Says that a run copies data that its ranks could read where it lies. */
private[supply] object InPlaceHint {
  /** `option`: what makes them read it there. */
  def show(lmdb: LmdbRDD, option: String): Unit = if (lmdb.canBeReadInPlace)
    Progress.note(s"the ranks could read this LMDB where it lies, without copies: use $option")
}
