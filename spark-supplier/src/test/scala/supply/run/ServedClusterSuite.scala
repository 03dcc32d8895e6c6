package supply.run

import java.util.concurrent.CountDownLatch

import org.scalatest.funsuite.AnyFunSuite

import supply.protocol.Layout.Constant
import supply.testing.Background.{inBackground, result}
import supply.testing.{LinkRank, LocalCluster, ResultFiles, WithSpark}

/** Ranks that connect to executors that are processes. */
class ServedClusterSuite extends AnyFunSuite with WithSpark {
  test(
    "an executor that is killed has its task run on another one, and results stay with their host") {
    LocalCluster(2) { spark =>
      val sc = spark.sparkContext
      val processes = LocalCluster.executors(spark, 2)
      val rows = spark.range(0, 1000, 1, 6).toDF()
      val writing = inBackground(rows.write.format("supply").mode("append")
          .option("serve", "cluster").option("serve-secret", "k").option("ranks", 2)
          .option("block-elements", 10).save())
      val begun = new CountDownLatch(2)
      val killed = new CountDownLatch(1)
      def address = scala.util.Try(s"${Hubs.address(sc)}/cluster").toOption
      assert(new supply.core.Deadline(60).poll(20)(address.isDefined))
      val ranks = (0 until 2).map { number =>
        inBackground {
          val rank = new LinkRank(address.get, "k", number, 2)
          assert(rank.open(rank.place()).get.kind == Constant.LINK_ACCEPTED)
          while (rank.received.isEmpty) assert(rank.take(rank.next()))
          begun.countDown()
          killed.await()
          rank.drain(atEnd = () =>
            assert(rank.result("r", ResultFiles.bytes(number, Seq(number.toLong))) == ""))
        }
      }
      begun.await()
      ProcessHandle.of(processes.values.head).get.destroyForcibly()
      killed.countDown()
      val done = ranks.map(result(_))
      result(writing)
      assert(done.flatMap(_.rows).map(_.head.asInstanceOf[Long]).sorted == (0L until 1000))
      done.foreach(_.close())
      val found =
        spark.read.format("supply").option("results", "r").option("serve", "cluster").load()
      assert(found.collect().map(_.getLong(0)).sorted.toSeq == Seq(0L, 1L))
      supply.api.Results.release(found)
    }
  }
}
