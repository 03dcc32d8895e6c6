package supply.pair

import java.nio.file.{Path, Paths}

/**
 * Where the resident files of a run are: in this folder of each node; None: each beside the mapped
 * file of its pair, which is in memory.
 */
private[supply] final case class ResidentPlace(folder: Option[String]) {
  def of(pair: PairPaths): Path =
    folder.fold(Paths.get(pair.mappedFile).toAbsolutePath.getParent)(Paths.get(_))
}
