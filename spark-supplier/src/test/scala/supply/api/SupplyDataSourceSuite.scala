package supply.api

import java.io.StringWriter

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.Logger
import org.apache.logging.log4j.core.appender.WriterAppender
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, SourceException}
import supply.plan.Hostfile
import supply.rows.{Shapes, RowSource}
import supply.run.RunPlan
import supply.task.SupplySettings
import supply.testing.LocalSpark

/** DataFrames that are refused before any rank is awaited. */
class SupplyDataSourceSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  private def rows(expressions: String*): DataFrame =
    spark.range(0, 9, 1, 3).selectExpr(expressions: _*)

  test("partitionBy() is refused by its name") {
    val writer = rows("id", "id % 2 as half").write.format("supply").mode("append").option(
      "mapped-files", "m").option("named-pipes", "n")
    assert(intercept[ConfigException](writer.partitionBy("half").save()).getMessage.startsWith(
        "partitionBy() means nothing to ranks"))
  }

  test("a fraction that cannot be exchanged is refused by its option") {
    val writer = rows("id").write.format("supply").mode("append").option("mapped-files", "m")
      .option("named-pipes", "n").option("shuffle", "all").option("exchange-fraction", "1.5")
    assert(intercept[ConfigException](writer.save()).getMessage.startsWith(
        "--exchange-fraction is 1.5"))
  }

  test("columns of other types are named as Spark names them, with an expression that helps") {
    import org.apache.spark.ml.functions.vector_to_array
    import org.apache.spark.ml.linalg.{Matrices, Vectors}
    import org.apache.spark.mllib.linalg.{Vectors => OldVectors}
    def refused(data: DataFrame): String =
      intercept[ConfigException](RowSource.of(data, new Shapes)).getMessage
    val session = spark
    import session.implicits._
    val vectors = Seq((Vectors.dense(1, 2), OldVectors.dense(1, 2), Matrices.zeros(1, 1),
        Seq(Vectors.dense(1, 2)))).toDF("new", "old", "matrix", "several")
    assert(refused(vectors) == "a column cannot be supplied as it is " +
      "('new' is vector, use pyspark.ml.functions.vector_to_array(\"new\") (in Scala org.apache.spark.ml.functions); " +
      "'old' is vector, use pyspark.ml.functions.vector_to_array(\"old\") (in Scala org.apache.spark.ml.functions); " +
      "'matrix' is matrix, use a UDF that makes an array of numbers of it; " +
      "'several' is array<vector>, use one column for each vector: " +
      "pyspark.ml.functions.vector_to_array(\"several[0]\") (in Scala org.apache.spark.ml.functions))")
    val arrays = vectors.select(vector_to_array($"new"), vector_to_array($"old"))
    assert(RowSource.of(arrays, new Shapes).schema.columns.map(_.format) == Seq("+w:2",
      "+w:2"))

    Seq(
      ("map('a', id)", "map<string,bigint>", "c['KEY']"),
      ("map(1, id)", "map<int,bigint>", "c[KEY]"),
      ("struct(id as `a b`, 2 as two)", "struct<a b:bigint,two:int>", "c.`a b`"),
      ("array(array(id))", "array<array<bigint>>", "flatten(c)"),
      ("array(struct(id))", "array<struct<id:bigint>>", "transform(c, x -> x.id)"),
      ("array('a')", "array<string>", "concat_ws(',', c)"),
      ("array(true)", "array<boolean>", "cast(cast(c as array<int>) as array<double>)"),
      ("array(decimal(1.5))", "array<decimal(10,0)>", "cast(c as array<double>)"),
      ("null", "void", "cast(c as double)"),
      ("interval '3' day", "interval day", "cast(c as string)"),
      ("make_interval(1)", "interval", "cast(c as string)")).foreach { case (made, name, helps) =>
      val message = refused(rows(s"$made as c"))
      assert(message.startsWith(s"a column cannot be supplied as it is ('c' is $name, use $helps"))
      val expression = helps.replace("'KEY'", "'a'").replace("KEY", "1")
      RowSource.of(rows(s"$made as c").selectExpr(expression), new Shapes)
    }
  }

  test("too many columns and a name that is too long are refused, with advice") {
    def refused(expressions: Seq[String]): String =
      intercept[ConfigException](RowSource.of(rows(expressions: _*),
          new Shapes).schema).getMessage
    assert(refused((0 to 400).map(i => s"id as column_$i")).contains("not 401: select fewer"))
    assert(refused(Seq(s"id as `${"long" * 40}`")).contains("rename 'longlong"))
  }

  test("a warning names the ranks that get nothing, and says what to do") {
    val log = new StringWriter
    val appender = WriterAppender.createAppender(null, null, log, "test", false, true)
    val logger = LogManager.getLogger("supply.RunPlan").asInstanceOf[Logger]
    val level = logger.getLevel
    appender.start()
    logger.addAppender(appender)
    logger.setLevel(Level.WARN)
    try Seq(1, 2).foreach { partitions =>
        RunPlan(sc, FrameSource.of(rows("id").coalesce(partitions), new Shapes),
          SupplySettings(2, "m", "n"), Hostfile.oneNode(2))
      }
    finally {
      logger.setLevel(level)
      logger.removeAppender(appender)
    }
    assert(log.toString.linesIterator.toSeq == Seq(
      "the data has 1 partition for 2 ranks, so rank 1 gets no rows: use 8 partitions, which have about equal numbers " +
        "of rows (df.repartition(N); of an LMDB, --partitions or its reader's option partitions)"))
  }

  test("a column whose first array is empty or missing is named") {
    Seq("if(id = 0, cast(array() as array<int>), array(1, 2, 3))",
      "cast(null as array<int>)").foreach { list =>
      val message = intercept[SourceException](RowSource.of(rows("id", s"$list as list"),
          new Shapes)).getMessage
      assert(message.contains("column 'list' has no array, or its first one is empty"))
    }
  }
}
