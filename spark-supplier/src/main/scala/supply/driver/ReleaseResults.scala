package supply.driver

import java.lang.ref.Cleaner

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.slf4j.LoggerFactory

import supply.executor.{FoundResult, PinnedTask}
import supply.plan.Hostfile
import supply.results.OpenResults

/** Removes the files of a result by a job on the nodes. */
private[driver] final class ReleaseResults(
    sc: SparkContext, hosts: Hostfile, name: String, files: IndexedSeq[FoundResult]) {
  import ReleaseResults._

  private val key = files.map(file => file.path.file -> file.generation).toSet

  /** Removes the files. Throws a SupplyException if a node does not answer. */
  def now(): Unit = {
    remove()
    loads.synchronized(loads.remove(key))
    ()
  }

  private def remove(): Unit = if (!sc.isStopped) {
    val (places, found) = (hosts, files)
    NodeJob.run(sc, hosts, s"releasing the result '$name'", timeout, seconds = timeout) { _ =>
      found.filter(file => places.places(file.rank).isOn(PinnedTask.host)).foreach { file =>
        OpenResults.remove(file.path, file.generation)
      }
    }
    ()
  }

  private def add(): Unit = loads.synchronized {
    loads.update(key, loads.getOrElse(key, 0) + 1)
  }

  /**
   * Runs in the cleaner's thread. Another `load()` may have found the same files, or may be about to
   * find them.
   */
  private def drop(): Unit = {
    val isLast = loads.synchronized {
      val left = loads.get(key).map(_ - 1)
      if (left.contains(0)) loads.remove(key) else left.foreach(loads.update(key, _))
      left.contains(0)
    }
    if (isLast && beginRemoval()) {
      try removeUnused()
      finally loads.synchronized {
          removing = false
          loads.notifyAll()
        }
    }
  }

  /** Waits until no load runs. false: one has found these files. */
  private def beginRemoval(): Boolean = loads.synchronized {
    while (loading > 0 || removing) loads.wait()
    removing = !loads.contains(key)
    removing
  }

  private def removeUnused(): Unit =
    try remove()
    catch {
      case NonFatal(e) => log.warn(
          s"cannot release the result '$name', which no DataFrame refers to: the session's end does",
          e)
    }
}

private[driver] object ReleaseResults {
  private val log = LoggerFactory.getLogger(classOf[ReleaseResults])
  private val cleaner = Cleaner.create()
  private val timeout = 60.0

  /** How many loads refer to these files, by path and generation. */
  private val loads = mutable.Map.empty[Set[(String, Long)], Int]

  /** How many loads run, and whether files are being removed because nothing refers to them. */
  private var loading = 0
  private var removing = false

  /**
   * Runs `load`, which finds files. From its start to its end, none is removed because nothing
   * refers to it.
   */
  def whileLoading[A](load: => A): A = {
    loads.synchronized {
      while (removing) loads.wait()
      loading += 1
    }
    try load
    finally loads.synchronized {
        loading -= 1
        loads.notifyAll()
      }
  }

  /** Releases when the garbage collector finds that nothing refers to `loaded`. */
  def whenUnreachable(loaded: LoadedResults, files: ReleaseResults): Cleaner.Cleanable = {
    files.add()
    cleaner.register(loaded, () => files.drop())
  }
}
