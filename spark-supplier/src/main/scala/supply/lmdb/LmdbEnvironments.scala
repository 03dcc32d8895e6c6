package supply.lmdb

import java.lang.Long.parseUnsignedLong
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.supply.PartitionContext
import org.fusesource.lmdbjni.{Constants, Cursor, Env, LMDBException, Transaction}

import supply.core.SourceException
import supply.source.ForeignFile

/** An open environment, and its mapping. */
private[lmdb] final class MappedEnvironment(val env: Env, path: String) {
  val places = new MappedPlaces

  /** The file, as it was when the first task wanted to refer to it. */
  lazy val file: ForeignFile = ForeignFile.find(path)
}

/** The LMDB environments of this process; tasks share one if the file may stay mapped. */
private[supply] object LmdbEnvironments {
  private final class Shared(val environment: MappedEnvironment) {
    var users = 0
  }

  private var shared = Map.empty[String, Shared]
  private var kept = Set.empty[(Long, String)]

  // The database is never opened for writing, and neither is its lock file, which may be missing,
  // read-only or another user's. Tasks are threads of a pool: a transaction must not belong to one.
  private def flags = Constants.RDONLY | Constants.NOLOCK | Constants.NOTLS | Constants.NOSUBDIR

  /** The environment of that data file. The caller must [[release]] it. */
  private[lmdb] def acquire(file: String): MappedEnvironment = synchronized {
    val found = shared.getOrElse(file, {
        val made = new Shared(open(file))
        shared += file -> made
        made
      })
    found.users += 1
    found.environment
  }

  def release(file: String): Unit = synchronized {
    val found = shared(file)
    found.users -= 1
    if (found.users == 0) {
      shared -= file
      found.environment.env.close()
    }
  }

  /** Keeps it open until the task ends: a mapping per partition takes a quarter of the time. */
  def keepFor(context: TaskContext, file: String): Unit = synchronized {
    val task = PartitionContext.ofTask(context)
    val keeper = (task.taskAttemptId(), file)
    if (!kept(keeper)) {
      acquire(file)
      kept += keeper
      task.addTaskCompletionListener[Unit](_ =>
        synchronized {
          kept -= keeper
          release(file)
        })
      ()
    }
  }

  /** The data file for views. It is examined once if a task keeps it mapped. */
  def foreignFile(path: String): ForeignFile =
    synchronized(shared.get(path)).fold(ForeignFile.find(path))(_.environment.file)

  /** Loads lmdbjni's native library. Throws [[SourceException]] if it cannot. */
  def requireLibrary(): Unit = load().close()

  private def load(): Env =
    try {
      val made = new Env()
      NativeLibrary.removeUnpacked()
      made
    } catch {
      case e: LinkageError =>
        throw new SourceException(
          s"lmdbjni's native library does not load: this jar has it for Linux on ${machines.mkString(" and ")}, and this " +
            s"is ${System.getProperty("os.name")} on ${System.getProperty("os.arch")}. If the jar has none for this " +
            "machine, build the jar here, or supply a DataFrame. The library is unpacked into java.io.tmpdir " +
            s"(${System.getProperty("java.io.tmpdir")}), which must allow executables ($e)",
          e)
    }

  /** Those of the libraries in this jar. The one for aarch64 needs a compiler when the jar is built. */
  private def machines: Seq[String] =
    "x86_64" +: Seq("aarch64").filter(machine =>
      getClass.getResource(s"/META-INF/native/linux64/$machine/liblmdbjni.so") != null)

  /** An own environment. liblmdb forbids a second one because of its lock file, unused here. */
  private[lmdb] def open(file: String): MappedEnvironment = {
    val env = load()
    try {
      // Not what the writer reserved, which may be terabytes. liblmdb maps at least the pages in use.
      env.setMapSize(Files.size(Paths.get(file)))
      env.open(file, flags)
      new MappedEnvironment(env, file)
    } catch {
      case e: LMDBException =>
        env.close()
        throw new SourceException(s"liblmdb cannot open $file: ${e.getMessage}", e)
    }
  }
}

/** A cursor on a mapping of a data file: on the mapping of the process, or on one of its own. */
private[lmdb] final class LmdbMapping(file: String, own: Boolean) extends AutoCloseable {
  private val environment =
    if (own) LmdbEnvironments.open(file) else LmdbEnvironments.acquire(file)
  private val env = environment.env
  private var transaction: Transaction = null

  val cursor: Cursor =
    try {
      transaction = env.createReadTransaction()
      env.openDatabase(transaction, null, 0).openCursor(transaction)
    } catch {
      case e: Throwable =>
        release()
        throw (e match {
          case _: LMDBException => new SourceException(
              s"liblmdb cannot read $file: ${e.getMessage}. It must not be written to during a run",
              e)
          case other => other
        })
    }

  /** Where in the file addresses of the entries are. */
  def places: MappedPlaces = environment.places

  private def release(): Unit = {
    if (transaction != null) transaction.close()
    if (own) env.close() else LmdbEnvironments.release(file)
  }

  override def close(): Unit = {
    cursor.close()
    release()
  }
}

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

  /** The mapped range of the file that has this address: liblmdb does not say where it maps. */
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

/**
 * lmdbjni's native library. Each JVM loads a copy in java.io.tmpdir, which this removes at once. To
 * avoid the copy, install the library and name its folder by -Dlibrary.lmdbjni.path.
 */
private[lmdb] object NativeLibrary {
  /** Removes the loaded copy. lmdbjni does it when the JVM exits, and never if it is killed. */
  def removeUnpacked(): Unit = removed

  private lazy val removed: Unit = unpacked().foreach(Files.deleteIfExists)

  /** The copies that this process has mapped; an installed library's name has no random number. */
  private def unpacked(): Seq[Path] = {
    val folder = Paths.get(System.getProperty("java.io.tmpdir")).toRealPath()
    Files.readAllLines(Paths.get("/proc/self/maps"), ISO_8859_1).asScala.toSeq
      .map(_.split(" +", 6)).collect {
        case Array(_, _, _, _, _, file) if file.startsWith("/") => Paths.get(file)
      }
      .filter(path =>
        path.getParent == folder && path.getFileName.toString.matches(
          "liblmdbjni-.*\\d{10,}\\..+")).distinct
  }
}
