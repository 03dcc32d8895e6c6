package supply.driver

import supply.executor.TaskReport

/** The table at the end of a run, one row for each pair. */
private[supply] object Report {
  private val header =
    IndexedSeq("rank", "host", "partitions", "elements", "bytes", "GB/s", "waited for rank",
      "waited for source")

  /** GB/s run from attaching to the last release; the time waited for the source is sampled. */
  def table(reports: Seq[TaskReport]): String = {
    val rows = header +: reports.sortBy(_.rank).map { r =>
      IndexedSeq(
        r.rank.toString,
        r.host,
        r.partitions.toString,
        r.elements.toString,
        r.bytes.toString,
        f"${r.bytes.toDouble / math.max(1L, r.nanos)}%.3f",
        seconds(r.waitedForRank),
        seconds(r.waitedForSource))
    }
    val widths = header.indices.map(column => rows.map(_(column).length).max)
    rows.map { row =>
      row.zip(widths).zipWithIndex.map { case ((cell, width), column) =>
        if (column == 1) cell.padTo(width, ' ') else " " * (width - cell.length) + cell
      }.mkString("  ") + "\n"
    }.mkString
  }

  private def seconds(nanos: Long): String = f"${nanos / 1e9}%.3f s"
}
