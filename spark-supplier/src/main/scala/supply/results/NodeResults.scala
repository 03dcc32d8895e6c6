package supply.results

import scala.util.control.NonFatal

import supply.core.{ConfigException, Deadline, PairException, SupplyException}
import supply.pair.{ConfigFiles, PairPaths}
import supply.plan.{Groups, Hostfile, Sharing}
import supply.protocol.Schema
import supply.task.{PinnedTask, SessionEnd}

/**
 * Waits on one node until all its ranks have sealed the result, or one never will: at most `seconds`
 * from [[find]] on. A time of the driver's clock could not be compared with this node's.
 */
private[supply] final class NodeResults(settings: ResultsSettings, hosts: Hostfile, seconds: Double)
    extends Serializable {
  /** An error is an answer, and no failure of the task, which Spark would try again. */
  def find(): Either[SupplyException, Seq[FoundResult]] =
    try {
      val groups = Groups(hosts, settings.share)
      val written = groups.ranks.flatMap(_.lift(settings.reader)).toSet
      Right(wait(PinnedTask.pairsHere(settings.configFiles, hosts).filter(pair =>
            written(pair._1))))
    } catch {
      case e: SupplyException => Left(e)
      case NonFatal(e) if !e.isInstanceOf[InterruptedException] =>
        Left(new PairException(s"cannot look for the result '${settings.name}': $e", e))
    }

  private def wait(pairs: Seq[(Int, PairPaths)]): Seq[FoundResult] = {
    var missing = pairs.map { case (rank, pair) =>
      val path = ResultPath.of(pair, settings.folder, settings.name)
      rank -> new RankResult(rank, pair, path, settings.name)
    }
    val found = Seq.newBuilder[FoundResult]
    val all = new Deadline(seconds).poll(NodeResults.pollMillis) {
      missing = missing.filter { case (rank, result) =>
        val header = result.find()
        header.foreach { header =>
          found += FoundResult(rank, PinnedTask.host, result.path, header.generation,
            header.run, header.blockCount, header.elements, header.fileBytes, header.schema)
        }
        header.isEmpty
      }
      missing.isEmpty
    }
    if (!all) throw missing.head._2.timeout(settings.timeout)
    found.result()
  }
}

private object NodeResults {
  private val pollMillis = 20L
}

/**
 * Which result a user wants to read: ResultsOptions says what each option means. `places`: of ranks that
 * have connected, who keeps their results.
 */
private[supply] final case class ResultsSettings(
    name: String,
    ranks: Int,
    configFiles: ConfigFiles,
    hosts: Option[String],
    folder: Option[String],
    timeout: Double,
    share: Sharing = Sharing.Off,
    reader: Int = 0,
    places: Option[Hostfile] = None) {
  /** The places of the ranks. Throws a ConfigException if a setting or the host file is wrong. */
  def readHosts(): Hostfile = {
    ResultPath.requireName(name)
    if (ranks < 1) throw new ConfigException(s"ranks is $ranks: it must be at least 1")
    Deadline.require("timeout", timeout)
    folder.filterNot(_.startsWith("/")).foreach { relative =>
      throw new ConfigException(s"results-folder '$relative' is not an absolute path")
    }
    if (hosts.isEmpty) configFiles.read(ranks)
    places.getOrElse(Hostfile(hosts, ranks, configFiles.texts))
  }
}

/** A rank's sealed result: where it lies, and what its header says. */
private[supply] final case class FoundResult(rank: Int, host: String, path: ResultPath,
    generation: Long, run: Long, blocks: Int, elements: Long, bytes: Long, schema: Schema)

/** A task that opens results. */
private[supply] object ResultsTask {
  /** The driver's endpoint. */
  final val Endpoint = "supply-results"

  def apply[A](body: => A): A = {
    SessionEnd.atEnd("open results")(OpenResults.removeAll())
    body
  }
}
