package supply.results

import org.apache.spark.{SPARK_VERSION, TaskContext}
import org.apache.spark.ml.linalg.{Matrices, Vectors}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types.{ArrayType, DataType, DoubleType, LongType, SQLUserDefinedType, UserDefinedType}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.funsuite.AnyFunSuite

import supply.block.WrittenBlocks
import supply.core.ConfigException
import supply.rows.{ColumnForms, NamedColumns, RowSource, Shapes}
import supply.testing.{BlockFileBytes, LocalSpark, PlainValues, ResultFiles}

/**
 * Every type goes into blocks and comes back out of a result file that has these blocks. Those of
 * ranks are in type_table.py of the Python package.
 */
class TypesSuite extends AnyFunSuite with LocalSpark with WrittenBlocks {
  import TypesSuite._

  private lazy val spark = {
    val built = SparkSession.builder().config(sc.getConf).getOrCreate()
    built.conf.set("spark.sql.timeType.enabled", true)
    built
  }

  private def vectors: DataFrame = {
    val session = spark
    import session.implicits._
    (0 until Rows).map(i =>
      (i.toLong, Vectors.dense(i, 2), Vectors.sparse(3, Seq(1 -> i.toDouble)),
        Matrices.dense(2, 3, Array[Double](i, 4, 2, 5, 3, 6)), new Point(i), new Code(i))).toDF(
      "id", "dense", "sparse",
      "matrix", "point", "code").coalesce(1)
  }

  private def there(hasNulls: Boolean)(sql: String, column: Int): String =
    if (hasNulls) s"if(id % 3 = ${column % 3}, null, $sql)" else sql

  private def compare(kinds: Seq[(String, String)], hasNulls: Boolean, forms: ColumnForms): Unit = {
    def select(of: ((String, String)) => String): DataFrame =
      vectors.selectExpr("id" +: kinds.zipWithIndex.map { case (kind, i) =>
        there(hasNulls)(of(kind), i) + s" as c$i"
      }: _*)
    val source = RowSource.of(select(_._1), new Shapes(forms))
    val partition = source.rdd.partitions.head
    var raw = Seq.empty[Array[Byte]]
    use = context =>
      raw = rawBlocks(source.open(partition, context), source.schema, source.mainColumn,
        blockElements = 7)
    sc.runJob(sc.parallelize(Seq(0), 1), (context: TaskContext, _: Iterator[Int]) => use(context))
    ResultFiles(1) { files =>
      BlockFileBytes.write(files.path(0), BlockFileBytes.ofBlocks(source.schema, raw))
      val found = files.load(spark).orderBy("id").collect()
      val wanted = select(_._2).orderBy("id").collect()
      assert(found.length == Rows)
      kinds.indices.foreach { i =>
        assert(found.map(row => PlainValues.of(row.get(i + 1))).toSeq ==
            wanted.map(row => PlainValues.of(row.get(i + 1))).toSeq, kinds(i)._1)
      }
    }
  }

  for (hasNulls <- Seq(false, true)) {
    test(s"every type comes back${if (hasNulls) ", with nulls" else ""}") {
      val ofVersion = Kinds ++ (if (Version >= Spark4) Kinds4 else Nil) ++
        (if (Version >= Spark41) Kinds41 else Nil)
      compare(ofVersion, hasNulls, ColumnForms.Own)
    }

    test(s"half precision and sparse vectors come back${if (hasNulls) ", with nulls" else ""}") {
      // Columns c0 and c1 have half precision.
      val kinds = Seq(
        "id / 4D" -> "float(id / 4D)",
        "array(float(id), 1e9F)" -> "array(float(id), float('Infinity'))",
        "sparse" -> ("named_struct('size', 3, 'indices', if(id = 0, array(), array(1)), " +
          "'values', if(id = 0, array(), array(double(id))))"),
        "dense" -> ("named_struct('size', 2, 'indices', if(id = 0, array(1), array(0, 1)), " +
          "'values', if(id = 0, array(2D), array(double(id), 2D)))"))
      compare(kinds, hasNulls,
        ColumnForms(
          NamedColumns("half", Set("c0", "c1")),
          sparse = NamedColumns("vectors", Set.empty, areAll = true)))
    }
  }

  test("what Spark 3.5 lacks is refused or unknown there, by name") {
    if (Version < Spark4) (Kinds4 ++ Kinds41).foreach { case (sql, _) =>
      val refused = intercept[Exception](RowSource.of(vectors.selectExpr(s"$sql as c"), new Shapes))
      assert(refused.isInstanceOf[ConfigException] ||
          refused.isInstanceOf[org.apache.spark.sql.AnalysisException], sql)
    }
  }
}

private object TypesSuite {
  /** Tasks of a local Spark are threads of this process. */
  @volatile private var use: TaskContext => Unit = _

  private final val Rows = 12
  private val Version = SPARK_VERSION.split('.').take(2).map(_.toInt).foldLeft(0)(_ * 100 + _)
  private final val Spark4 = 400
  private final val Spark41 = 401

  private def same(sql: String): (String, String) = sql -> sql

  /** What makes the column of `id`, and what comes back. */
  private val Kinds: Seq[(String, String)] = Seq("id % 2 = 0", "tinyint(5 - id)",
    "smallint(id * -31)",
    "int(id * 65537)", "id * -9876543210", "float(id) / 4", "id / 3D",
    "cast(id - 5 as decimal(10, 2))",
    "cast(id - 5 as decimal(38, 5)) * -1000003", "concat('ä', repeat('x', int(id % 4)))", "''",
    "cast('x' as char(3))", "cast('xy' as varchar(2))", "encode(string(id), 'UTF-8')",
    "encode('', 'UTF-8')", "date_add(date'1999-12-31', int(id))", "timestamp_micros(id * 1000003)",
    "cast(timestamp_micros(id * -999983) as timestamp_ntz)", "array(float(id), 1.5F)",
    "array(array(id, 1L), array(2L, id), array(0L, 0L))", "array(id > 5, true)",
    "sequence(1, int(id % 3) + 1)", "transform(sequence(0, id % 3), i -> repeat('ä', int(i)))",
    "transform(sequence(1, id % 3 + 1), i -> sequence(i, 3))", "if(id < 8, array(), array(id))",
    "cast(array() as array<double>)", "cast(null as array<string>)", "array(id, null)",
    "array(cast(null as string), 'a')",
    "transform(sequence(1, id % 2), i -> cast(i as decimal(10, 2)))",
    "named_struct('x', id, 'name', string(id), 'in', named_struct('even', id % 2 = 0))",
    "named_struct('t', sequence(0, id % 2))",
    "named_struct('a', cast(null as int), 'b', cast(null as array<string>))",
    "map(concat('a', id), id, 'b', -1L)", "cast(map() as map<int, double>)",
    "map(id, named_struct('list', array(id, null)))").map(same) ++ Seq(
    "dense" -> "array(double(id), 2D)", "sparse" -> "array(0D, double(id), 0D)",
    "array(dense, dense)" -> "array(array(double(id), 2D), array(double(id), 2D))",
    "matrix" -> "array(array(double(id), 2D, 3D), array(4D, 5D, 6D))",
    "point" -> "array(double(id), 0.5D)", "array(point)" -> "array(array(double(id), 0.5D))",
    "code" -> "id")

  /** Classes of a user whose types are called as those of Spark ML. */
  @SQLUserDefinedType(udt = classOf[VectorUDT])
  class Point(val x: Int) extends Serializable

  class VectorUDT extends UserDefinedType[Point] {
    override def sqlType: DataType = ArrayType(DoubleType, containsNull = false)
    override def serialize(point: Point): Any = new GenericArrayData(Array(point.x.toDouble, 0.5))
    override def deserialize(datum: Any): Point =
      new Point(datum.asInstanceOf[ArrayData].getDouble(0).toInt)
    override def userClass: Class[Point] = classOf[Point]
  }

  @SQLUserDefinedType(udt = classOf[MatrixUDT])
  class Code(val number: Int) extends Serializable

  class MatrixUDT extends UserDefinedType[Code] {
    override def sqlType: DataType = LongType
    override def serialize(code: Code): Any = code.number.toLong
    override def deserialize(datum: Any): Code = new Code(datum.asInstanceOf[Long].toInt)
    override def userClass: Class[Code] = classOf[Code]
  }

  private val Kinds4: Seq[(String, String)] = Seq("concat('Ä', id) collate UTF8_LCASE",
    "make_dt_interval(id, 0, 0, -0.000001)", "interval '3' hour * id",
    "make_ym_interval(0, int(id))",
    "array(interval '1' day * id)").map(same) ++ Seq(
    """parse_json(concat('{"a":[1,null],"id":', id, '}'))""" -> """concat('{"a":[1,null],"id":', id, '}')""",
    """array(named_struct('v', parse_json('"x"')))""" -> """array(named_struct('v', '"x"'))""")

  private val Kinds41: Seq[(String, String)] = Seq(same("make_time(int(id), 30, 1.5)"))
}
