package supply.executor

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals

import supply.plan.{HostNames, Hostfile}

/** The names of hosts, for tasks that belong there. Only the driver knows them. */
private[supply] object PreferredHosts {
  /** The same places, with the names that the executors have which have registered on their hosts. */
  def known(sc: SparkContext, hosts: Hostfile): Hostfile =
    HostNames.known(hosts, SparkInternals.executorSlots(sc).map(_.host).distinct)

  /**
   * The names of each host of the file: its own, or also those of the executors that have registered
   * there with another one, for example an address. Spark compares names as texts.
   */
  def of(sc: SparkContext, hosts: Hostfile): Map[String, Seq[String]] = {
    lazy val registered = SparkInternals.executorSlots(sc).map(_.host).distinct
    HostNames.known(hosts, registered).byHost.map { case (host, places) =>
      host -> (if (registered.contains(host)) Seq(host)
               else host +: registered.filter(places.head.isOn))
    }.toMap
  }
}
