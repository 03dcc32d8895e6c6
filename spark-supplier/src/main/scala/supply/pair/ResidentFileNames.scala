package supply.pair

import java.nio.file.{Files, Path, Paths}

/**
 * The names of a rank's resident file (proto/PROTOCOL.md, "Resident files"). `kept`: the name, in
 * the same folder, of a file that outlives its run.
 */
final case class ResidentFileNames(folder: Path, pair: PairPaths, kept: Option[String] = None) {
  private val own = Paths.get(pair.mappedFile).getFileName

  /** The sealed file of this run alone. */
  val ofRun: Path = folder.resolve(s"$own.resident")

  /** The file until it is sealed. */
  val unsealed: Path = folder.resolve(s"$own.resident.unsealed")

  val whenSealed: Path = kept.fold(ofRun)(folder.resolve(_))

  def group: Option[String] = pair.group

  /** Removes what belongs to that run alone. */
  def remove(run: Long): Unit = Seq(unsealed, ofRun).foreach { path =>
    if (ResidentFile.writerOfOther(path, run).isEmpty) Files.deleteIfExists(path)
  }
}
