package supply.sources.lmdb

import java.lang.Long.parseUnsignedLong
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import supply.core.SourceException
import supply.data.ForeignFile

/** A range of this process's memory in which a file is mapped, from `fileOffset` on. */
private[lmdb] final case class MappedRange(start: Long, end: Long, fileOffset: Long) {
  def contains(address: Long): Boolean = address >= start && address < end

  def offsetOf(address: Long): Long = address - start + fileOffset
}

/** Tells where in the file an address of an environment's mapping is. Any thread may ask. */
private[lmdb] final class MappedPlaces {
  @volatile private var range = MappedRange(0, 0, 0)

  def offsetOf(address: Long, file: ForeignFile): Long = {
    if (!range.contains(address)) range = MappedRange.around(address, file)
    range.offsetOf(address)
  }
}

private[lmdb] object MappedRange {
  // Addresses and offset are hexadecimal, the inode is decimal: proc_pid_maps(5).
  private val Line = """([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ ([0-9]+) .*""".r

  /** The range around an address, which must be one of the file's. liblmdb does not tell it. */
  def around(address: Long, file: ForeignFile): MappedRange =
    Files.readAllLines(Paths.get("/proc/self/maps"), ISO_8859_1).asScala.collectFirst {
      case Line(start, end, offset, inode)
          if range(start, end, offset).contains(address) && parseUnsignedLong(
            inode) == file.inode =>
        range(start, end, offset)
    }.getOrElse(throw new SourceException(
        s"${file.path} was replaced while it was opened: it must not be written to during a run"))

  private def range(start: String, end: String, offset: String) =
    MappedRange(unsigned(start), unsigned(end), unsigned(offset))

  private def unsigned(hexadecimal: String) = parseUnsignedLong(hexadecimal, 16)
}
