package supply.api

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.{LocalSpark, TemporaryFolder}

/** Which columns a join must not use as its key. */
class OrderDependenceSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()
  private lazy val range = spark.range(0, 100, 1, 4).select(col("id"), (col("id") % 7).as("k"))
  private lazy val shuffled = range.repartition(3, col("k"))
  private val number = monotonically_increasing_id().as("n")

  private def found(data: DataFrame): Set[String] = OrderDependence.columns(data).toSet

  test("numbers that Spark gives to the rows of a shuffle") {
    val numbered = shuffled.withColumn("n", number)
    Seq(
      numbered,
      numbered.cache(),
      numbered.select("id", "n").where("n > 3").as("t"),
      range.join(range.withColumnRenamed("id", "other"), "k").withColumn("n", number),
      range.distinct().withColumn("n", number),
      range.orderBy("k").withColumn("n", number),
      range.limit(50).withColumn("n", number),
      shuffled.withColumn("n", expr("uuid()")),
      shuffled.withColumn("n", (rand() * 1000).cast("long")),
      numbered.withColumn("m", col("n")).select(col("id"), (col("m") + 1).as("n")),
      numbered.union(numbered),
      range.withColumn("n", row_number().over(Window.orderBy(lit(1)))),
      shuffled.withColumn("n", row_number().over(Window.orderBy(monotonically_increasing_id()))),
      range.withColumn("n", udf((id: Long) => id).asNondeterministic().apply(col("id"))),
      shuffled.withColumn("a", array(number)).select(col("id"), explode(col("a")).as("n"))).foreach(
      data => assert(found(data) == Set("n"), data.queryExecution.analyzed))
    numbered.unpersist()
    shuffled.withColumn("n", number).createOrReplaceTempView("numbered")
    assert(found(spark.sql("with t as (select n as m, id from numbered) select a.m as n, a.id " +
        "from t a join t b on a.id = b.id")) == Set("n"))
  }

  test("no column that stays the same") {
    TemporaryFolder { folder =>
      shuffled.withColumn("n", number).write.parquet(s"$folder/numbered")
      val read = spark.read.parquet(s"$folder/numbered")
      Seq(
        read,
        read.withColumn("m", monotonically_increasing_id()),
        range.withColumn("n", number),
        range.where("id > 3").withColumn("n", number).repartition(3),
        range.coalesce(2).withColumn("n", number),
        shuffled.withColumn("n", number).localCheckpoint().withColumn("m", number),
        shuffled.withColumn("file", input_file_name()),
        shuffled.withColumn("n", row_number().over(Window.partitionBy("k").orderBy("id"))),
        range.groupBy("k").agg(max("id").as("id")).withColumn("twice", col("k") * 2)).foreach(
        data => assert(found(data) == Set.empty, data.queryExecution.analyzed))
    }
  }

  test("a shuffled RDD is in no certain order") {
    import spark.implicits._
    val rdd = sc.parallelize(0 until 100, 4).map(i => i -> i)
    assert(found(rdd.toDF("k", "v").withColumn("n", number)) == Set.empty)
    assert(found(rdd.groupByKey().mapValues(_.sum).toDF("k", "v").withColumn("n", number)) == Set(
      "n"))
  }
}
