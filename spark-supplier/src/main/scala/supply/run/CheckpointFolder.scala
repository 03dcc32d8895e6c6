package supply.run

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FSDataOutputStream, FileSystem, Path}
import org.apache.hadoop.fs.permission.{FsAction, FsPermission}

import supply.core.ConfigException

/**
 * The checkpoints of runs in one folder, of any Hadoop file system. `checkpoint-7/rank-2` is what
 * rank 2 has saved, and `checkpoint-7/complete` is written last: it has the files' sizes, so what a
 * process that died has left is no checkpoint. Rename is not used: on object stores it is none.
 */
private[supply] final class CheckpointFolder(val path: Path, fs: FileSystem) {
  import CheckpointFolder._

  /** A new file, in place of one that is there. It counts when [[complete]] has been called. */
  def create(number: Long, rank: Int): FSDataOutputStream =
    fs.create(new Path(of(number), rankFile(rank)), true)

  def open(number: Long, rank: Int): FSDataInputStream =
    fs.open(new Path(of(number), rankFile(rank)))

  /** Makes a checkpoint of what these ranks have saved; then only the newest `keep` ones stay, and none that is torn. */
  def complete(number: Long, ranks: Seq[Int], text: String, keep: Int): Unit = {
    val described = json.createObjectNode().put("text", text)
    val sizes = described.putObject("bytes")
    ranks.foreach(rank => sizes.put(rankFile(rank), sizeOf(number, rankFile(rank))))
    val out = fs.create(new Path(of(number), Complete), true)
    try {
      out.write(described.toString.getBytes(UTF_8))
      out.hsync()
    } finally out.close()
    val (whole, torn) = numbers().filter(_ < number).partition(number =>
      fs.exists(new Path(of(number), Complete)))
    (torn ++ whole.drop(keep - 1)).foreach(number => fs.delete(of(number), true))
  }

  /** The number after those of all checkpoints, also of torn ones. */
  def next(): Long = numbers().headOption.fold(1L)(_ + 1)

  /** The newest one that is complete and newer than `after`, and why others are none. */
  def latest(after: Long): (Option[Checkpoint], Seq[String]) = {
    val torn = Seq.newBuilder[String]
    val found = numbers().iterator.filter(_ > after).flatMap { number =>
      try Some(read(number))
      catch {
        case e: IOException =>
          torn += s"${of(number)}: ${e.getMessage.linesIterator.next()}"
          None
      }
    }
    // The torn ones are known after that.
    val newest = if (found.hasNext) Some(found.next()) else None
    (newest, torn.result())
  }

  /** Throws an IOException if it is none. */
  private def read(number: Long): Checkpoint = {
    val described =
      try parsed(new Path(of(number), Complete))
      catch { case _: FileNotFoundException => throw new IOException("it was not completed") }
    val sizes = described.path("bytes")
    val files = sizes.fieldNames.asScala.toSeq
    files.foreach { file =>
      val (size, expected) = (sizeOf(number, file), sizes.get(file).asLong)
      if (size != expected) throw new IOException(s"$file has $size of $expected bytes")
    }
    Checkpoint(number, files.map(_.stripPrefix(RankPrefix).toInt), described.path("text").asText)
  }

  private def parsed(file: Path): JsonNode = {
    val in = fs.open(file)
    try {
      val found = json.readTree(in: java.io.InputStream)
      if (found == null || !found.has("text"))
        throw new IOException(s"${file.getName} was not written to its end")
      found
    } finally in.close()
  }

  private def sizeOf(number: Long, file: String) =
    fs.getFileStatus(new Path(of(number), file)).getLen

  /** The newest first. */
  private def numbers(): Seq[Long] = {
    val names =
      try fs.listStatus(path).toSeq.map(_.getPath.getName)
      catch { case _: FileNotFoundException => Nil }
    names.collect { case Numbered(number) => number.toLong }.sorted.reverse
  }

  private def of(number: Long) = new Path(path, s"checkpoint-$number")
}

/** `ranks`: those that have saved a state. `text`: what the client says of it. */
private[supply] final case class Checkpoint(number: Long, ranks: Seq[Int], text: String)

/** Of one run: where its ranks save, and from where they load. */
private[supply] final case class CheckpointFolders(
    to: Option[CheckpointFolder], from: Option[CheckpointFolder])

private[supply] object CheckpointFolder {
  private final val Complete = "complete"
  private final val RankPrefix = "rank-"
  private val Numbered = raw"checkpoint-(\d{1,18})".r
  private val json = new ObjectMapper

  private def rankFile(rank: Int) = RankPrefix + rank

  private val OwnerAlone = new FsPermission("700")
  // An object store says that all may write.
  private val WithPermissions = Set("file", "hdfs")

  /**
   * Makes the folder, if it is not there, for this user alone. Throws a ConfigException if it cannot be written, or if
   * all users may: states are pickled, so who writes one can run code in the ranks.
   */
  def of(name: String, conf: Configuration): CheckpointFolder = {
    val (fs, path, mode) =
      try {
        val path = new Path(name)
        val fs = path.getFileSystem(conf)
        if (!fs.exists(path) && !fs.mkdirs(path, OwnerAlone))
          throw new IOException("it cannot be made")
        (fs, fs.makeQualified(path), fs.getFileStatus(path).getPermission)
      } catch {
        case NonFatal(e) =>
          throw new ConfigException(
            s"the folder of checkpoints $name cannot be used: ${e.getMessage}: name one that the driver may write, of a " +
              "file system that its Hadoop knows",
            e)
      }
    if (WithPermissions(fs.getUri.getScheme) && mode.getOtherAction.implies(FsAction.WRITE))
      throw new ConfigException(
        s"the folder of checkpoints $name cannot be used: all users may write there ($mode), and what they write would " +
          "run in your ranks: name a folder in it, which the call makes")
    new CheckpointFolder(path, fs)
  }
}
