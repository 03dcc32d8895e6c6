package supply.pair

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

/**
 * The names of a rank's resident file (proto/PROTOCOL.md, "Resident files"). `kept`: the name, in
 * the same folder, of a file that outlives its run.
 */
final case class ResidentFileNames(folder: Path, pair: PairPaths, kept: Option[String] = None) {
  // Pairs of other folders may have mapped files with the same name.
  private val own =
    f"${Paths.get(pair.mappedFile).getFileName}.${ResidentFileNames.hash(pair.mappedFile)}%016x"

  /** The sealed file of this run alone. */
  val ofRun: Path = folder.resolve(s"$own.resident")

  /** The file until it is sealed. */
  val unsealed: Path = folder.resolve(s"$own.resident.unsealed")

  val whenSealed: Path = kept.fold(ofRun)(folder.resolve(_))

  def group: Option[String] = pair.group

  /** Removes what belongs to that run alone. */
  def remove(run: Long): Unit = Seq(unsealed, ofRun).foreach { path =>
    if (ResidentFile.runOf(path, group).exists(Seq(0, run).contains)) Files.deleteIfExists(path)
  }
}

object ResidentFileNames {
  private final val OffsetBasis = 0xcbf29ce484222325L
  private final val Prime = 0x100000001b3L

  /** FNV-1a of 64 bits, of the path's UTF-8. */
  private[pair] def hash(path: String): Long =
    path.getBytes(UTF_8).foldLeft(OffsetBasis)((hash, byte) => (hash ^ (byte & 0xff)) * Prime)
}
