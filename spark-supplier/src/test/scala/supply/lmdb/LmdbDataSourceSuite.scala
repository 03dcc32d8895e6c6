package supply.lmdb

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.funsuite.AnyFunSuite

import com.google.protobuf.ByteString

import supply.core.ConfigException

import CaffeProtos.{Datum => Proto}
import supply.protocol.Column
import supply.api.FrameSource
import supply.rows.Shapes
import supply.source.Source
import supply.testing.{Background, LocalSpark, TemporaryFolder, TestRank}

class LmdbDataSourceSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  test("several paths are refused with what to do") {
    TemporaryFolder { folder =>
      val path = TestLmdb.numbered(folder.resolve("db"), 3).toString
      val error = intercept[ConfigException](spark.read.format("lmdb").load(path, path))
      assert(error.getMessage.contains("union() the frames of several"))
    }
  }

  test("each row has the values of its Datum") {
    TemporaryFolder { folder =>
      val entries = (0 until 20).map { i =>
        val key = Array(i.toByte, 0x80.toByte, 0xff.toByte, 0.toByte)
        key -> Proto.newBuilder().setLabel(7 - i).setChannels(i).setHeight(1).setWidth(5)
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

  private def numbered(inPlace: Boolean)(body: DataFrame => Unit): Unit = TemporaryFolder {
    folder =>
      val path = TestLmdb.numbered(folder.resolve("db"), 30).toString
      body(spark.read.format("lmdb").option("partitions", 3).option("inPlace", inPlace).load(path))
  }

  private def source(data: DataFrame): Source = FrameSource.of(data, new Shapes)

  test("a DataFrame that is read with inPlace is supplied in place if it is the whole LMDB") {
    numbered(inPlace = true) { data =>
      assert(source(data).schema == Datum.inPlaceSchema)
      assert(source(data.select(data.columns.toSeq.map(data(_)): _*)).schema == Datum.inPlaceSchema)
      assert(source(data.as("renamed")).partitionElements.contains(Seq(10L, 10L, 10L)))
    }
    numbered(inPlace = false)(data => assert(source(data).schema == Datum.schema))
  }

  test("what makes rows of it is refused; queries are not") {
    numbered(inPlace = true) { data =>
      data.createOrReplaceTempView("lmdb")
      val others = Seq(data.selectExpr("label", "data as x"), data.where("label > 3"),
        data.select("label", "label"), data.limit(5),
        data.repartition(2), data.unionAll(data), data.withColumn("one", data("label") + 1),
        spark.range(3).toDF("id").where("id in (select label from lmdb)"))
      others.foreach { other =>
        val message = withClue(other.queryExecution.analyzed)(
          intercept[ConfigException](source(other)).getMessage)
        assert(message.startsWith("a DataFrame that was read with inPlace"))
      }
      assert(data.count() == 30 && data.where("label > 3").count() == 18)
      val persisted = data.persist()
      try intercept[ConfigException](source(persisted))
      finally persisted.unpersist()
    }
  }

  test("some of its columns are supplied in place, too") {
    numbered(inPlace = true) { data =>
      val some = source(data.select("data", "label", "encoded").select("label", "data"))
      assert(some.schema.columns == Seq(Column("label", "i"), Column("data", "vz")))
      assert(some.mainColumn.contains(1) && some.partitionElements.map(_.sum).contains(30L))
      assert(source(data.select("key")).mainColumn.isEmpty)
    }
  }

  test("ranks get each Datum of a DataFrame that is read with inPlace") {
    numbered(inPlace = true) { data =>
      TemporaryFolder { folder =>
        val configFiles = TestRank.configFiles(folder, 1)
        val rank = new TestRank(configFiles.read().head)
        try {
          assert(rank.open(rank = 0) == "OK")
          val taken = Background.inBackground {
            val labels = Iterator.continually(rank("take")).takeWhile(_.startsWith("OK")).toVector
            labels -> rank("take")
          }
          data.write.format("supply").mode("append").option("mapped-files", configFiles.mappedFiles)
            .option("named-pipes", configFiles.namedPipes).option("shuffle", "none")
            .option("timeout", 20L).save()
          val (labels, end) = Background.result(taken)
          assert(labels == (0 until 30).map(i => s"OK ${i % 10}") && end == "END_OF_DATA")
        } finally {
          rank("close")
          rank.close()
        }
      }
    }
  }
}
