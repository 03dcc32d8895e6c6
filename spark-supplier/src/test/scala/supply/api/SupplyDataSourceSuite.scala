package supply.api

import java.io.StringWriter

import scala.util.Try

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.Logger
import org.apache.logging.log4j.core.appender.WriterAppender
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.types.StructType
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.plan.{Groups, Hostfile, Sharing}
import supply.rows.{ColumnForms, NamedColumns, RefusedColumns, RowSource, Shapes}
import supply.run.RunPlan
import supply.task.SupplySettings
import supply.testing.LocalSession

/** DataFrames that are refused before any rank is awaited. */
class SupplyDataSourceSuite extends AnyFunSuite with LocalSession {

  private def rows(expressions: String*): DataFrame =
    spark.range(0, 9, 1, 3).selectExpr(expressions: _*)

  test("a fraction that cannot be exchanged is refused by its option") {
    val writer = rows("id").write.format("supply").mode("append").option("mapped-files", "m")
      .option("named-pipes", "n").option("shuffle", "all").option("exchange-fraction", "1.5")
    assert(intercept[ConfigException](writer.save()).getMessage.startsWith(
        "--exchange-fraction is 1.5"))
  }

  private def formats(data: DataFrame, shapes: Shapes = new Shapes): Seq[String] =
    RowSource.of(data, shapes).schema.entries.map(entry => entry.format + entry.childFormat)

  test("columns of other types are named as Spark names them, with an expression that helps") {
    def refused(data: DataFrame): String =
      intercept[ConfigException](RowSource.of(data, new Shapes)).getMessage
    Seq(
      ("null", "void", "cast(c as double)"),
      ("make_interval(1)", "interval", "cast(c as string)")).foreach { case (made, name, helps) =>
      val message = refused(rows(s"$made as c"))
      assert(message == s"a column cannot be supplied as it is ('c' is $name, use $helps)")
      RowSource.of(rows(s"$made as c").selectExpr(helps), new Shapes)
    }
    // A type that is no text in any cast.
    for (geometry <- Try(StructType.fromDDL("c geometry(4326)")).toOption)
      assert(intercept[ConfigException](RefusedColumns.require(geometry)).getMessage.endsWith(
          "use a function that makes text or bytes of it, or drop it)"))
    assert(refused(rows("struct(array(make_interval(1)) as `a b`) as c", "id")).startsWith(
        "a column cannot be supplied as it is ('c.`a b`.item' is interval, use a cast"))
    assert(refused(rows("named_struct('a', id, 'a', id) as c")) ==
      "a column cannot be supplied as it is ('c' is struct<a:bigint,a:bigint>, " +
      "use a cast to a struct with a name for each field)")
  }

  private def varying(names: String = "varying"): Shapes = new Shapes(ColumnForms(
      varying = NamedColumns.of("lists", names, "auto", "varying")))

  test("lists that have one length in the first rows become arrays of more dimensions") {
    assert(formats(rows("array(id, id) as c")) == Seq("+w:2l"))
    assert(formats(rows("array(id, null) as c")) == Seq("+w:2", "l"))
    assert(formats(rows("array(array(id, id), array(id, id)) as c")) == Seq("+w:2", "+w:2l"))
    assert(formats(rows("array('a') as c")) == Seq("+w:1", "u"))
    assert(formats(rows("sequence(1, id) as c")) == Seq("+l", "l"))
    assert(formats(rows("array(id, id) as c"), varying()) == Seq("+l", "l"))
    val two = rows("array(id, id) as c", "array(id) as d", "id as e")
    assert(formats(two, varying("d")) == Seq("+w:2l", "+l", "l", "l"))
    assert(intercept[ConfigException](formats(two, varying("d, f"))).getMessage ==
      "lists names 'f', and there is no such column: c, d, e")
    assert(formats(rows("map(id, 'a') as c")) == Seq("+m", "+s", "l", "u"))
    assert(formats(rows("struct(id, array(id) as a) as c")) == Seq("+s", "l", "+w:1l"))
    for (none <- Seq("cast(array() as array<int>)", "cast(null as array<int>)"))
      assert(formats(rows(s"$none as c")) == Seq("+l", "i"))
  }

  test("half names columns of floats, and what is in them becomes half precision") {
    def halved(data: DataFrame): Seq[String] =
      formats(data, new Shapes(ColumnForms(NamedColumns("half", Set("c")))))
    assert(halved(rows("float(id) as c", "id / 2 as d")) == Seq("e", "g"))
    assert(halved(rows("array(id / 2, 1D) as c")) == Seq("+w:2e"))
    assert(halved(rows("struct(id, map('a', id / 2) as m) as c")) ==
      Seq("+s", "l", "+m", "+s", "u", "e"))
    for ((column, says) <- Seq("id as c" -> "half names 'c', which is bigint: it is for float",
        "id" -> "half names 'c', and there is no such column: id"))
      assert(intercept[ConfigException](halved(rows(column))).getMessage.startsWith(says))
  }

  test("vectors and matrices become arrays of numbers") {
    import org.apache.spark.ml.linalg.{Matrices, Vectors}
    import org.apache.spark.mllib.linalg.{Vectors => OldVectors}
    val session = spark
    import session.implicits._
    val data = Seq((Vectors.dense(1, 2), OldVectors.sparse(2, Seq(1 -> 2.0)),
        Matrices.dense(2, 3, Array(1, 2, 3, 4, 5, 6)), Seq(Vectors.dense(1, 2)))).toDF("new", "old",
      "matrix", "several")
    assert(formats(data) == Seq("+w:2g", "+w:2g", "+w:2", "+w:3g", "+w:1", "+w:2g"))
    assert(formats(data, varying()) ==
      Seq("+l", "g", "+l", "g", "+l", "+l", "g", "+l", "+l", "g"))
    val sparse = NamedColumns.of("vectors", "old", "dense", "sparse")
    assert(formats(data.select("new", "old"), new Shapes(ColumnForms(sparse = sparse))) ==
      Seq("+w:2g", "+s", "i", "+l", "i", "+l", "g"))
  }

  test("a name that is too long is refused, with advice") {
    val data = rows(s"id as `${"long" * 20000}`")
    assert(intercept[ConfigException](RowSource.of(data, new Shapes).schema).getMessage.contains(
        "rename 'longlong"))
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
          SupplySettings(2, "m", "n"), Hostfile.oneNode(2),
          Groups(Hostfile.oneNode(2), Sharing.Off))
      }
    finally {
      logger.setLevel(level)
      logger.removeAppender(appender)
    }
    assert(log.toString.linesIterator.toSeq == Seq(
      "the data has 1 partition for 2 ranks, so rank 1 gets no rows: use 8 partitions, which have about equal numbers " +
        "of rows (df.repartition(N); of an LMDB, --partitions or its reader's option partitions)"))
  }
}
