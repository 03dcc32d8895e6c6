package supply.results

import java.nio.file.{Path, Paths}

import supply.core.ConfigException
import supply.pair.PairPaths

/**
 * The names of a rank's result file (proto/PROTOCOL.md, "Block files"), and who may read it.
 * isInOwnFolder: it lies in a results folder, which goes with its last file.
 */
final case class ResultPath(
    file: String, group: Option[String], isInOwnFolder: Boolean = false) {
  /** The result, once its rank has sealed it. */
  def whenSealed: Path = Paths.get(file)

  /** The result until then. */
  def unsealed: Path = Paths.get(file + ".unsealed")
}

object ResultPath {
  private val Names = "[A-Za-z0-9_-]{1,64}"

  /** Of the rank with that pair. `folder`: the results folder; None: the mapped file's folder. */
  def of(pair: PairPaths, folder: Option[String], name: String): ResultPath = {
    val mapped = Paths.get(pair.mappedFile)
    val in = folder.map(Paths.get(_)).getOrElse(mapped.getParent)
    ResultPath(in.resolve(s"${mapped.getFileName}.$name.result").toString, pair.group,
      folder.isDefined)
  }

  /** Refuses a name that the contract does not allow. */
  def requireName(name: String): Unit =
    if (!name.matches(Names)) throw new ConfigException(
      s"'$name' is no name of a result: it has 1 to 64 of the characters A-Z a-z 0-9 _ -")
}
