package supply.driver

import supply.plan.Hostfile

/**
 * The places of a job: a task each, at `hosts.places` of its partition. `name`: for messages;
 * `asksForExecutors`: whether the job asks for executors where tasks are missing.
 */
private[supply] final case class WatchedPlaces(
    hosts: Hostfile, name: Int => String, asksForExecutors: Boolean)

private[supply] object WatchedPlaces {
  def ranks(hosts: Hostfile): WatchedPlaces =
    WatchedPlaces(hosts, rank => s"rank $rank", asksForExecutors = true)

  /**
   * The first rank of each node. A request for executors of these alone would make those of the
   * other ranks surplus.
   */
  def nodes(hosts: Hostfile): WatchedPlaces = {
    val places =
      if (hosts.byHost.isEmpty) hosts.places.take(1) else hosts.byHost.map(_._2.head).toIndexedSeq
    WatchedPlaces(Hostfile(places),
      node =>
        places(node).host.fold("the ranks' node (without hosts, any node)")(host =>
          s"node $host"),
      asksForExecutors = false)
  }
}
