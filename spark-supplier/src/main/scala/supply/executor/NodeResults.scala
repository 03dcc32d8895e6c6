package supply.executor

import scala.util.control.NonFatal

import supply.core.{Deadline, PairException, SupplyException}
import supply.pair.PairPaths
import supply.plan.Hostfile
import supply.results.{RankResult, ResultPath}

/**
 * Waits on one node until all its ranks have sealed the result, or one never will: at most `seconds`
 * from [[find]] on. A time of the driver's clock could not be compared with this node's.
 */
private[supply] final class NodeResults(settings: ResultsSettings, hosts: Hostfile, seconds: Double)
    extends Serializable {
  /** An error is an answer, and no failure of the task, which Spark would try again. */
  def find(): Either[SupplyException, Seq[FoundResult]] =
    try Right(wait(PinnedTask.pairsHere(settings.configFiles, hosts)))
    catch {
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
