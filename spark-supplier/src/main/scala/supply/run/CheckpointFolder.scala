package supply.run

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.CommonPathCapabilities.{FS_ACLS, FS_PERMISSIONS}
import org.apache.hadoop.fs.{FSDataInputStream, FSDataOutputStream, FileAlreadyExistsException, FileStatus, FileSystem, LocalFileSystem, Path}
import org.apache.hadoop.fs.permission.{FsAction, FsPermission}
import org.apache.hadoop.security.UserGroupInformation

import supply.core.{ConfigException, FailureText}

/**
 * The checkpoints of runs in one folder, of any Hadoop file system. `checkpoint-7/rank-2` is what
 * rank 2 has saved, and `checkpoint-7/complete` is written last: it has the files' sizes, so what a
 * process that died has left is no checkpoint. Rename is not used: on object stores it is none.
 */
private[supply] final class CheckpointFolder(val path: Path, fs: FileSystem) {
  import CheckpointFolder._

  /** What this run has saved, since its last checkpoint. */
  private val saved = ConcurrentHashMap.newKeySet[(Long, Int)]()
  // That next() has given first: a checkpoint without states has no file.
  @volatile private var begins = Long.MaxValue

  /** A new file. It counts when [[complete]] has been called. */
  def create(number: Long, rank: Int): FSDataOutputStream = {
    val file = create(number, rankFile(rank))
    saved.add(number -> rank)
    file
  }

  /** No number is given twice in one call of the client, so another one has made a file that is there. */
  private def create(number: Long, file: String): FSDataOutputStream =
    try fs.create(new Path(of(number), file), false)
    catch {
      case e: FileAlreadyExistsException => throw new ConfigException(
          s"$file of ${of(number)} is there already: another call writes checkpoints into this folder: give each call a " +
            "folder of its own",
          e)
    }

  def open(number: Long, rank: Int): FSDataInputStream =
    fs.open(new Path(of(number), rankFile(rank)))

  /** Makes a checkpoint of what these ranks have saved; then only the newest `keep` ones stay, and none that is torn. */
  def complete(number: Long, ranks: Seq[Int], text: String, keep: Int): Unit = {
    val others = ranks.filterNot(rank => saved.contains(number -> rank))
    if (others.nonEmpty || ranks.isEmpty && number < begins)
      throw new ConfigException(s"this run has not saved ${of(number)}" +
        others.headOption.fold("")(rank => s"/${rankFile(rank)}"))
    val described = json.createObjectNode().put("text", text)
    val sizes = described.putObject("bytes")
    ranks.foreach(rank => sizes.put(rankFile(rank), sizeOf(number, rankFile(rank))))
    // Spark Connect may repeat a call.
    if (!parsed(number).toOption.map(_.toString).contains(described.toString)) {
      val out = create(number, Complete)
      try {
        out.write(described.toString.getBytes(UTF_8))
        out.hsync()
      } finally out.close()
    }
    val (whole, torn) = numbers().filter(_ < number).partition(number =>
      fs.exists(new Path(of(number), Complete)))
    (torn ++ whole.drop(keep - 1)).foreach(number => fs.delete(of(number), true))
    saved.removeIf(_._1 < number)
    ()
  }

  /** The number after those of all checkpoints, also of torn ones. */
  def next(): Long = {
    val number = numbers().headOption.fold(1L)(_ + 1)
    begins = math.min(begins, number)
    number
  }

  /**
   * The newest one that is complete and newer than `after`, and why others are none. Throws a
   * ConfigException if one cannot be read: it may be complete, and an older one would lose work.
   */
  def latest(after: Long): (Option[Checkpoint], Seq[String]) = {
    val torn = Seq.newBuilder[String]
    val found = numbers().iterator.filter(_ > after).flatMap { number =>
      val whole =
        try read(number)
        catch {
          case e: IOException => throw new ConfigException(
              s"${of(number)} cannot be read: ${FailureText.of(e)}: if it is damaged, delete it, and the one before it is used",
              e)
        }
      whole.left.foreach(why => torn += s"${of(number)}: $why")
      whole.toOption
    }
    // The torn ones are known after that.
    val newest = if (found.hasNext) Some(found.next()) else None
    (newest, torn.result())
  }

  /** Or why it is none. */
  private def read(number: Long): Either[String, Checkpoint] = parsed(number).flatMap { described =>
    val sizes = described.path("bytes").properties.asScala.toSeq.map(size =>
      size.getKey -> size.getValue.asLong)
    val torn = sizes.flatMap { case (file, expected) =>
      val size =
        try Some(sizeOf(number, file))
        catch { case _: FileNotFoundException => None }
      if (size.contains(expected)) None
      else Some(s"$file ${size.fold("is not there")(size => s"has $size of $expected bytes")}")
    }
    torn.headOption.toLeft(Checkpoint(number, sizes.map(_._1.stripPrefix(RankPrefix).toInt),
        described.path("text").asText))
  }

  private def parsed(number: Long): Either[String, JsonNode] =
    try {
      val in = fs.open(new Path(of(number), Complete))
      try Option(json.readTree(in: java.io.InputStream)).filter(_.has("text")).toRight(CutOff)
      finally in.close()
    } catch {
      case _: FileNotFoundException => Left("it was not completed")
      case _: JsonProcessingException => Left(CutOff)
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
  private final val CutOff = s"$Complete was not written to its end"
  private final val RankPrefix = "rank-"
  private val Numbered = raw"checkpoint-(\d{1,18})".r
  private val json = new ObjectMapper

  private def rankFile(rank: Int) = RankPrefix + rank

  private val OwnerAlone = new FsPermission("700")

  /**
   * If `isWritten`, makes the folder, if it is not there, for this user alone. Throws a ConfigException if that fails, or
   * if other users may write there: states are pickled, so who writes one can run code in the ranks.
   */
  def of(name: String, conf: Configuration, isWritten: Boolean): CheckpointFolder = {
    val (fs, path, stranger) =
      try {
        val path = new Path(name)
        val fs = path.getFileSystem(conf) match {
          // With Hadoop's checksums hsync does nothing, and a file that is cut cannot be read.
          case local: LocalFileSystem => local.getRawFileSystem
          case other => other
        }
        if (isWritten && !fs.exists(path) && !fs.mkdirs(path, OwnerAlone))
          throw new IOException("it cannot be made")
        val stranger =
          if (hasModes(fs, path) && fs.exists(path)) strangerOf(fs.getFileStatus(path)) else None
        (fs, fs.makeQualified(path), stranger)
      } catch {
        case NonFatal(e) =>
          throw new ConfigException(
            s"the folder of checkpoints $name cannot be used: ${e.getMessage}: name one that the driver may write, of a " +
              "file system that its Hadoop knows",
            e)
      }
    stranger.foreach(who =>
      throw new ConfigException(
        s"the folder of checkpoints $name cannot be used: $who, and what they write would run in your ranks: chmod go-w " +
          "a folder of yours, or name a folder in it, which the call makes"))
    new CheckpointFolder(path, fs)
  }

  /** An object store says that all may write, and so does ABFS without a hierarchical namespace. */
  private def hasModes(fs: FileSystem, path: Path): Boolean =
    fs.hasPathCapability(path, FS_PERMISSIONS) &&
      (!fs.getUri.getScheme.startsWith("abfs") || fs.hasPathCapability(path, FS_ACLS))

  /** Who else may write there, by the rule of ssh. A mask of ACLs is the mode of the group. */
  private def strangerOf(folder: FileStatus): Option[String] = {
    val mode = folder.getPermission
    val trusted = Set("root", System.getProperty("user.name"),
      UserGroupInformation.getCurrentUser.getShortUserName)
    if (!trusted(folder.getOwner)) Some(s"it belongs to ${folder.getOwner}")
    else if (Seq(mode.getGroupAction, mode.getOtherAction).exists(_.implies(FsAction.WRITE)))
      Some(s"others than its owner may write there ($mode)")
    else None
  }
}
