package supply.task

import java.io.{ByteArrayOutputStream, ObjectOutputStream}

import scala.util.{Try, Using}

import org.apache.spark.rdd.RDD
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.lmdb.Datum
import supply.plan.Plan
import supply.testing.LocalSpark

/** What the task of a rank has of its partitions. */
class SentPartitionSuite extends AnyFunSuite with LocalSpark {
  private val limit = 1024 * 1024

  /** In local Spark, and on executors. */
  private val ways = Seq(true, false)

  private def bytesOf(value: AnyRef): Seq[Byte] = {
    val bytes = new ByteArrayOutputStream
    Using.resource(new ObjectOutputStream(bytes))(_.writeObject(value))
    bytes.toByteArray.toSeq
  }

  /** Sends all partitions to one task, which opens each of them twice. */
  private def assertSent(rdd: RDD[_]): Unit = {
    val partitions = rdd.partitions.toSeq
    assert(bytesOf(partitions).size > limit)
    for (isLocal <- ways) Using.resource(new PartitionSender(sc, isLocal)) { sender =>
      val inTask = sender.send(partitions.map(partition => partition.index -> partition))
      assert(bytesOf(inTask).size < limit)
      for (_ <- 0 until 2; partition <- partitions)
        assert(bytesOf(inTask(partition.index).partition) == bytesOf(partition))
    }
  }

  test("data that lies in partitions does not travel in the task") {
    val many = (0 until 40).map(i => i.toString * 100000)
    Seq(20, 1).foreach(partitions => assertSent(sc.parallelize(many, partitions)))
  }

  test("neither do thousands of small partitions, as of a folder with very many files") {
    assertSent(sc.parallelize((0 until 5000).map(_.toString * 100), 5000))
  }

  test("a large partition among small ones travels alone, and the small ones in the task") {
    val elements = (0 until 10).map(i => i.toString * (if (i == 4) 2 * limit else 10))
    val partitions = sc.parallelize(elements, 10).partitions.toSeq
    for (isLocal <- ways) Using.resource(new PartitionSender(sc, isLocal)) { sender =>
      val inTask = sender.send(partitions.map(partition => partition.index -> partition))
      (0 until 10).foreach(i => assert((inTask(i).partition eq partitions(i)) == (i > 4)))
    }
  }

  test("with one order for all ranks each partition is sent once") {
    val source = new DatumSource(sc.parallelize(Seq.empty[Datum.Tuple], 5))
    val plan = Plan(partitions = 5, ranks = 3, epochs = 1, seed = 0, globalBatch = Some(6))
    PinnedRDD.using(sc, source, plan, _ => Nil) { rdd =>
      val parents = rdd.partitions.map(_.asInstanceOf[RankPartition].parents)
      assert(parents.head.keySet == (0 until 5).toSet && parents.forall(_ eq parents.head))
    }
  }

  test("nothing is left in Spark afterwards") {
    val large = sc.parallelize(Seq("a" * limit, "b" * limit), 2).partitions.toSeq
    for (isLocal <- ways) {
      val sender = new PartitionSender(sc, isLocal)
      val inTask = sender.send(large.zipWithIndex.map(_.swap))
      assert(inTask(0).partition == large.head && !(inTask(0).partition eq large.head))
      assert(inTask(0).partition eq inTask(0).partition, "a copy for each epoch")
      sender.close()
      assert(Try(inTask(1).partition).isFailure)
    }
  }
}
