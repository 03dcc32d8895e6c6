package supply.executor

import supply.core.SupplyException
import supply.pair.{ConfigFiles, Pair}
import supply.plan.Hostfile

/** Restarts the timeout of this node's ranks: attaches to each pair without a task. */
private[supply] final class StreamSignal(
    configFiles: ConfigFiles, hosts: Hostfile, run: Long) extends Serializable {
  def send(): Unit =
    hosts.ranksOn(PinnedTask.host).foreach { rank =>
      try if (Pair.hasRank(PinnedTask.paths(configFiles, hosts, rank)))
          PinnedTask.attach(configFiles, hosts, rank, 0, timeout = 0, run).close()
      catch { case _: SupplyException => () } // The next batch fails with the same error.
    }
}
