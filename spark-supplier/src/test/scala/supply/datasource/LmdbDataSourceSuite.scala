package supply.datasource

import org.apache.spark.sql.SparkSession
import org.scalatest.funsuite.AnyFunSuite

import com.google.protobuf.ByteString

import supply.sources.lmdb.CaffeProtos.{Datum => Proto}
import supply.sources.lmdb.TestLmdb
import supply.testing.{LocalSpark, TemporaryFolder}

class LmdbDataSourceSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  test("each row has the values of its Datum") {
    TemporaryFolder { folder =>
      val entries = (0 until 20).map { i =>
        val key = Array(i.toByte, 0x80.toByte, 0xff.toByte, 0.toByte)
        key -> Proto.newBuilder().setLabel(7 - i).setChannels(i).setHeight(2).setWidth(3)
          .setEncoded(i % 2 == 0)
          .setData(ByteString.copyFrom(Array.tabulate(5 * i)(at => (at - i).toByte))).build()
      }
      val path =
        TestLmdb.write(folder.resolve("db"), entries.map(e => e._1 -> e._2.toByteArray)).toString
      val data = spark.read.format("lmdb").option("partitions", 3).load(path)
      // The sort keeps rows in memory, each of which must be a copy of its own.
      val rows = data.sort("channels").collect()
      assert(data.schema.map(_.name) ==
        Seq("key", "label", "channels", "height", "width", "encoded", "data"))
      assert(rows.length == 20)
      rows.zip(entries).foreach { case (row, (key, datum)) =>
        assert(row.getAs[Array[Byte]](0).toSeq == key.toSeq)
        assert(row.toSeq.slice(1, 6) == Seq[Any](datum.getLabel, datum.getChannels, datum.getHeight,
          datum.getWidth, datum.getEncoded))
        assert(row.getAs[Array[Byte]](6).toSeq == datum.getData.toByteArray.toSeq)
      }
      assert(data.select("label").where("encoded").collect().map(_.getInt(0)).toSeq.sorted ==
        (7 to -11 by -2).sorted)
    }
  }
}
