package supply.driver

import org.apache.spark.SparkContext
import org.slf4j.LoggerFactory

import supply.data.Source
import supply.executor.{PinnedRDD, PlannedPartition, SupplySettings}
import supply.plan.{EqualSteps, Hostfile, Plan, Shuffle, Uneven}

/** Makes the plan of a run. */
private[supply] object RunPlan {
  private val log = LoggerFactory.getLogger("supply.RunPlan")

  def apply(sc: SparkContext, source: Source, settings: SupplySettings, hosts: Hostfile): Plan = {
    val partitions = source.rdd.partitions.length
    val plan = Plan(partitions, settings.ranks, settings.epochs, settings.seed, settings.shuffle)
    if (settings.uneven == Uneven.Keep) plan
    else {
      val counted =
        source.partitionElements.getOrElse(count(sc, source, plan, hosts, settings.timeout))
      val steps = EqualSteps(counted, (0 until plan.ranks).map(plan.partitionsOf),
        settings.blockElements.getOrElse(1), isPadded = settings.uneven == Uneven.Pad)
      log.info(
        s"each rank makes ${steps.steps} steps of ${steps.stepElements} elements in an epoch: " +
          s"${steps.steps * steps.stepElements * plan.ranks} elements of ${counted.sum} (--uneven)")
      plan.copy(equalSteps = Some(steps))
    }
  }

  /** Elements of each partition, counted where its rank is: what Spark persists is there. */
  private def count(sc: SparkContext, source: Source, plan: Plan, hosts: Hostfile,
      timeout: Double): IndexedSeq[Long] = {
    val inOrder = plan.copy(epochs = 1, shuffle = Shuffle.Off)
    new RankJob(sc, hosts, timeout, "counting the elements of each partition (--uneven)").run {
      new PinnedRDD(sc, source, inOrder, hosts)
        .flatMap(
          _.iterator.flatMap(_.partitions).map(partition => partition.index -> count(partition)))
        .collect().sortBy(_._1).map(_._2).toIndexedSeq
    }
  }

  private def count(partition: PlannedPartition): Long = {
    val cursor = partition.open()
    var elements = 0L
    try while (cursor.next()) elements += 1
    finally cursor.close()
    elements
  }
}
