package supply.driver

import java.util.UUID

import scala.reflect.ClassTag

import org.apache.spark.SparkContext

import supply.core.MisplacedException
import supply.executor.PinnedTask
import supply.plan.Hostfile

/** A job with one task on each node that has ranks. */
private[supply] object NodeJob {
  def nodes(hosts: Hostfile): Int = places(hosts).size

  /** The place of the first rank of each node. */
  private def places(hosts: Hostfile) =
    if (hosts.byHost.isEmpty) hosts.places.take(1) else hosts.byHost.map(_._2.head)

  /** Runs `work` on each node of the host file, in order; its argument: whether it is the first. */
  def run[A: ClassTag](sc: SparkContext, hosts: Hostfile, description: String)(
      work: Boolean => A): Seq[A] = {
    val targets = places(hosts).zipWithIndex.map { case (place, index) =>
      (place, index == 0) -> place.host.toSeq
    }
    JobGroup(sc, s"supply-nodes-${UUID.randomUUID()}", description) {
      sc.makeRDD(targets).map { case (place, first) =>
        if (!place.isOn(PinnedTask.host))
          throw new MisplacedException(
            s"$description: the task for ${place.host.mkString} landed on ${PinnedTask.host}")
        work(first)
      }.collect().toSeq
    }
  }
}
