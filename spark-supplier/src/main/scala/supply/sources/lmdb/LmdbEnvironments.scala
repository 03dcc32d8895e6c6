package supply.sources.lmdb

import java.nio.file.{Files, Paths}

import org.apache.spark.TaskContext
import org.apache.spark.supply.PartitionContext
import org.fusesource.lmdbjni.{Constants, Env, LMDBException}

import supply.core.SourceException
import supply.data.ForeignFile

/** An open environment, and its mapping. */
private[lmdb] final class MappedEnvironment(val env: Env, path: String) {
  val places = new MappedPlaces

  /** The file, as it was when the first task wanted to refer to it. */
  lazy val file: ForeignFile = ForeignFile.find(path)
}

/** The LMDB environments of this process; tasks share one if the file may stay mapped. */
object LmdbEnvironments {
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
          "lmdbjni's native library does not load: it exists for 64-bit x86 Linux, and this is " +
            s"${System.getProperty("os.name")} on ${System.getProperty("os.arch")}; it is unpacked into java.io.tmpdir " +
            s"(${System.getProperty("java.io.tmpdir")}), which must allow executables ($e)",
          e)
    }

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
