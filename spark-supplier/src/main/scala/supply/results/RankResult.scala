package supply.results

import java.io.IOException
import java.nio.file.{NoSuchFileException, Path, Paths}

import supply.core.{ConfigException, PairException, PlacementException, RankEndedException, RankException, SupplyException}
import supply.pair.{Pair, PairFile, PairPaths}

/** The result of one rank, on its node: steps X1 to X3 of proto/PROTOCOL.md. For one thread. */
private[supply] final class RankResult(rank: Int, pair: PairPaths, val path: ResultPath,
    name: String) {
  private var state = "nothing"

  /** One check. None: the rank has not sealed it yet. Throws a SupplyException if it never will. */
  def find(): Option[BlockFileHeader] =
    try {
      val found = sealedFile
      if (found.isEmpty) checkUnsealed()
      found.foreach(requireRank)
      found
    } catch {
      case e @ (_: PairFile.NotSharedYetException | _: PairException) =>
        state = e.getMessage
        None
      case e: IOException => throw new RankException(s"rank $rank: cannot read ${path.file}: $e")
    }

  /** What is missing after the timeout. */
  def timeout(seconds: Double): SupplyException = new RankException(
    f"rank $rank%d has not sealed its result '$name%s' within $seconds%.0f s (timeout): in ${path.whenSealed.getParent}%s " +
      s"there is $state, and the rank ${if (rankLives) "lives" else "has no pair open"}",
    isTimeout = true)

  private def rankLives: Boolean =
    try Pair.hasRank(pair)
    catch { case _: SupplyException => false }

  private def sealedFile: Option[BlockFileHeader] =
    try Some(OpenResults.find(path))
    catch { case _: NoSuchFileException => None }

  private def checkUnsealed(): Unit =
    try OpenResults.progress(path) match {
        case BlockFile.Aborted(reason) =>
          throw new RankEndedException(s"rank $rank aborted its result '$name': $reason")
        case BlockFile.Created => state = s"${path.unsealed.getFileName}, which is empty"
        case BlockFile.Writing =>
          state = s"${path.unsealed.getFileName}, which is being written"
        case BlockFile.Died => throw new RankEndedException(
            s"rank $rank died before it sealed its result '$name' (${path.unsealed})")
        case BlockFile.Renamed => ()
      }
    catch { case _: NoSuchFileException => state = s"no file of '$name'" }

  private def requireRank(header: BlockFileHeader): Unit =
    if (header.rank >= 0 && header.rank != rank) throw new PlacementException(
      s"${path.file} is of MPI rank ${header.rank}, not $rank: the hosts of this read and mpirun's host file " +
        "must name the same nodes in the same order")
}

/**
 * The names of a rank's result file (proto/PROTOCOL.md, "Block files"), and who may read it.
 * isInOwnFolder: it lies in a results folder, which goes with its last file.
 */
private[supply] final case class ResultPath(
    file: String, group: Option[String], isInOwnFolder: Boolean = false) {
  /** The result, once its rank has sealed it. */
  def whenSealed: Path = Paths.get(file)

  /** The result until then. */
  def unsealed: Path = Paths.get(file + ".unsealed")
}

private[supply] object ResultPath {
  /** Of the rank with that pair. `folder`: the results folder; None: the mapped file's folder. */
  def of(pair: PairPaths, folder: Option[String], name: String): ResultPath =
    ResultPath(pair.resultFile(folder, name), pair.group, folder.isDefined)

  /** Refuses a name that the contract does not allow. */
  def requireName(name: String): Unit =
    if (!PairPaths.isResultName(name)) throw new ConfigException(
      s"'$name' is no name of a result: it has 1 to 64 of the characters A-Z a-z 0-9 _ -")
}
