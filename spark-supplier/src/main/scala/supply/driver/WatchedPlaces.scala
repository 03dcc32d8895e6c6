package supply.driver

import supply.plan.Hostfile

/** The places of a job: a task each, at `hosts.places` of its partition. `name`: for messages. */
private[supply] final case class WatchedPlaces(hosts: Hostfile, name: Int => String)

private[supply] object WatchedPlaces {
  def ranks(hosts: Hostfile): WatchedPlaces = WatchedPlaces(hosts, rank => s"rank $rank")

  /** The first rank of each node. */
  def nodes(hosts: Hostfile): WatchedPlaces = {
    val places =
      if (hosts.byHost.isEmpty) hosts.places.take(1) else hosts.byHost.map(_._2.head).toIndexedSeq
    WatchedPlaces(Hostfile(places),
      node => s"node ${places(node).host.getOrElse("of this program")}")
  }
}
