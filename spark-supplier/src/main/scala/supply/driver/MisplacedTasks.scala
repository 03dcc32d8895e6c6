package supply.driver

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.supply.DriverEndpoint

import supply.core.DriverCalls
import supply.executor.Misplaced

/**
 * Counts how often the task of a partition lands on a wrong node ([[Misplaced.stop]]): the last time
 * of `limit` fails. No other endpoint of this driver may have its name.
 */
private[driver] final class MisplacedTasks(sc: SparkContext, name: String,
    limit: Int = Misplaced.Limit) extends AutoCloseable {
  private val moves = mutable.Map.empty[Misplaced.MayMove, Int]
  private val endpoint = new DriverEndpoint(sc, name)({
    case move: Misplaced.MayMove =>
      moves.update(move, moves.getOrElse(move, 0) + 1)
      moves(move) < limit
  })

  def calls: DriverCalls = endpoint.calls

  override def close(): Unit = endpoint.close()
}
