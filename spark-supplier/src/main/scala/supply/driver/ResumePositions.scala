package supply.driver

import supply.core.ConfigException
import supply.executor.SupplySettings
import supply.protocol.SavedPosition

/** The value of --resume-positions: what the ranks of earlier runs have saved. */
private[supply] object ResumePositions {
  /** For each earlier run, oldest first, the saved positions of its ranks, by rank. */
  def of(settings: SupplySettings): IndexedSeq[IndexedSeq[SavedPosition]] =
    settings.resumePositions.fold(IndexedSeq.empty[IndexedSeq[SavedPosition]])(runs)

  /** The number of ranks of the first run. */
  def firstRanks(settings: SupplySettings): Int =
    of(settings).headOption.fold(settings.ranks)(_.size)

  private def runs(text: String): IndexedSeq[IndexedSeq[SavedPosition]] =
    text.split("/", -1).map(ranks).toIndexedSeq

  private def ranks(text: String): IndexedSeq[SavedPosition] =
    text.split(",", -1).map(_.trim).zipWithIndex.map { case (saved, rank) =>
      val position = SavedPosition.read(saved).getOrElse(throw new ConfigException(
          s"--resume-positions: '$saved', of rank $rank, is no position: give the text that the rank has saved, or " +
            SavedPosition.NoPosition))
      if (position.isInExchange) throw new ConfigException(
        s"--resume-positions: rank $rank saved its position in the middle of an exchange, where the elements of one rank are " +
          "with others, too: save positions at the end of an epoch, or resume with the same number of ranks, each with its own " +
          "position and without --resume-positions")
      position
    }.toIndexedSeq
}
