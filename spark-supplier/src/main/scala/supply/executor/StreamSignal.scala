package supply.executor

import supply.core.SupplyException
import supply.pair.{ConfigFiles, Pair}
import supply.plan.Hostfile

/**
 * Shows the ranks of the node where it runs that their stream lives: it attaches to each pair and
 * leaves at once, so that a rank's time limit counts anew. Pairs that have a task, or no rank, are
 * left alone.
 */
private[supply] final class StreamSignal(
    configFiles: ConfigFiles, hosts: Hostfile, run: Long) extends Serializable {

  def send(): Unit =
    hosts.places.indices.filter(rank => hosts.places(rank).isOn(PinnedTask.host)).foreach { rank =>
      try if (Pair.hasRank(PinnedTask.paths(configFiles, hosts, rank)))
          PinnedTask.attach(configFiles, hosts, rank, 0, timeout = 0, run).close()
      catch { case _: SupplyException => () } // The next batch meets the same, and ends with it.
    }
}
