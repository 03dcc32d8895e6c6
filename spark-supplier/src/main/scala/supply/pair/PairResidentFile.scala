package supply.pair

import java.nio.file.Files

import supply.protocol.Schema

/**
 * The resident file of a pair: found, or written with an epoch. `run`: of this task. For the pair's
 * thread.
 */
final class PairResidentFile(pair: Pair, schema: Schema, names: ResidentFileNames, run: Long,
    space: => ResidentSpace) {
  private var writer = Option.empty[ResidentFileWriter]

  pair.requireBlockFiles()
  ResidentFolder.make(names.folder, names.group)
  if (pair.isUntouched) removeStale()
  private var found = ResidentFile.find(names.whenSealed, names.group, header)
  if (found.isDefined) Files.deleteIfExists(names.unsealed)

  /** The sealed file, from the END_OF_EPOCH of its epoch on. */
  def file: Option[ResidentFile] = {
    if (found.isEmpty) found = writer.flatMap(_.sealedFile)
    found
  }

  /** Writes the pair's next blocks up to END_OF_EPOCH into the file: a whole epoch. (F1) */
  def begin(): Unit = copyTo(ResidentFileWriter.create(names, header.copy(run = run), space))

  /** Continues an epoch that an earlier attempt has begun to write. Otherwise does nothing. */
  def resume(): Unit =
    ResidentFileWriter.continued(names, header, space).foreach(copyTo)

  /** Removes the file, unless it outlives the run: the rank has released everything. (E1) */
  def remove(): Unit = names.remove(run)

  /**
   * A run that died may have left files of this pair. Only one living run can have the pair's
   * mapped file.
   */
  private def removeStale(): Unit = {
    Files.deleteIfExists(names.unsealed)
    if (!ResidentFile.runOf(names.ofRun, names.group).forall(_ == run))
      Files.deleteIfExists(names.ofRun)
    ()
  }

  private def header = pair.residentFileHeader(schema, if (names.kept.isDefined) 0 else run)

  private def copyTo(next: ResidentFileWriter): Unit = {
    writer = Some(next)
    pair.copyTo(next)
  }
}
