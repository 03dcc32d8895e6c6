package supply.api

import scala.jdk.CollectionConverters._
import scala.util.Random

import com.google.protobuf.ByteString
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.{OneToOneDependency, Partition, TaskContext}
import org.scalatest.funsuite.AnyFunSuite

import supply.block.WrittenBlocks
import supply.core.Hint
import supply.lmdb.CaffeProtos.{Datum => Proto}
import supply.lmdb.TestLmdb
import supply.rows.{ColumnForms, EvenRows, NamedColumns, Shapes}
import supply.source.Source
import supply.testing.{BlockFileBytes, LocalSpark, LongTest, ResultFiles, TemporaryFolder}

/**
 * Whatever Spark asks of our data sources, a query has the same answer as over the same rows in Spark's own
 * memory, and ranks get that answer.
 */
class QueriesSuite extends AnyFunSuite with LocalSpark with WrittenBlocks {
  import QueriesSuite._

  private lazy val spark = {
    val built = SparkSession.builder().config(sc.getConf).getOrCreate()
    built.conf.set("spark.sql.shuffle.partitions", 2L)
    built
  }

  private def within[A](settings: (String, Any)*)(body: => A): A = {
    settings.foreach { case (name, value) => spark.conf.set(name, value.toString) }
    try body
    finally settings.foreach(setting => spark.conf.unset(setting._1))
  }

  /** The blocks of all partitions of a query, each as the result of a rank. */
  private def throughRanks(data: DataFrame, partitions: Option[Int])(
      body: DataFrame => Unit): Unit = {
    val own = FrameSource.of(data,
      new Shapes(ColumnForms(varying = NamedColumns("lists", Set.empty, areAll = true))))
    val source = partitions.fold(own)(EvenRows.of(data, own, _).get)
    val written = new Array[Seq[Array[Byte]]](source.rdd.partitions.length)
    use = (own, partition, context) =>
      written(partition.index) =
        rawBlocks(own.open(partition, context), own.schema, own.mainColumn, 7)
    new Tasks(source).count()
    if (written.nonEmpty) ResultFiles(written.length) { files =>
      written.indices.foreach(rank =>
        BlockFileBytes.write(files.path(rank),
          BlockFileBytes.ofBlocks(source.schema, written(rank), rank)))
      body(files.load(spark))
    }
  }

  private def answer(data: DataFrame): Seq[String] = data.collect().map(plain).toSeq.sorted

  /** `data` and `same` have the same rows. */
  private def compare(name: String, data: DataFrame, same: DataFrame, seed: Int, queries: Int,
      areSupplied: Boolean): Unit = {
    same.createOrReplaceTempView("expected")
    data.createOrReplaceTempView("found")
    for (number <- 0 until queries) {
      val random = new Random(seed * 1000003L + number)
      val sql = new Queries(random, same.schema).sql
      // Four queries have each pair of them.
      val settings = Seq("spark.sql.adaptive.enabled" -> (number % 2 == 0),
        "spark.sql.optimizer.nestedSchemaPruning.enabled" -> (number % 4 < 2))
      val partitions = if (random.nextInt(3) == 0) Some(3) else None
      withClue(s"$name, seed $seed, query $number, $settings, partitions: $partitions\n$sql\n") {
        // Without generated code: another way to the answer, and a quick one.
        val expected = within("spark.sql.codegen.wholeStage" -> false,
          "spark.sql.codegen.factoryMode" -> "NO_CODEGEN")(answer(spark.sql(sql.replace("TABLE",
                "expected"))))
        within(settings: _*) {
          def query = spark.sql(sql.replace("TABLE", "found"))
          assert(answer(query) == expected)
          if (areSupplied && expected.nonEmpty)
            throughRanks(query, partitions)(got => assert(answer(got) == expected, "(of ranks)"))
        }
      }
    }
  }

  private def compareAll(seed: Int, queries: Int): Unit = TemporaryFolder { folder =>
    val made = new MadeRows(new Random(seed.toLong), count = 23)
    val same = spark.createDataFrame(made.rows.asJava, made.schema)
    throughRanks(same.repartition(2), None)(
      compare("a result", _, same, seed, queries, areSupplied = false))
    same.write.partitionBy("part").parquet(s"$folder/files")
    val files = spark.read.schema(made.schema).parquet(s"$folder/files")
    compare("what ranks get of files", files, same, seed, queries, areSupplied = true)
    val datums = (0 until 20).map { i =>
      Proto.newBuilder().setLabel(i % 7 - 3).setChannels(i).setHeight(1).setWidth(i % 4).setEncoded(
        i % 3 == 0)
        .setData(ByteString.copyFrom(Array.tabulate(i % 4 * i)(at => (at - i).toByte))).build()
    }
    val path = TestLmdb.write(folder.resolve("db"),
      datums.zipWithIndex.map { case (datum, i) => TestLmdb.key(i) -> datum.toByteArray }).toString
    val inPlace = seed % 2 == 0
    val lmdb =
      spark.read.format("lmdb").option("partitions", 3).option("inPlace", inPlace).load(path)
    val read = spark.createDataFrame(datums.zipWithIndex.map { case (datum, i) =>
        Row(TestLmdb.key(i), datum.getLabel, datum.getChannels, 1, datum.getWidth, datum.getEncoded,
          datum.getData.toByteArray)
      }.asJava, lmdb.schema)
    def nested(of: DataFrame) = of.selectExpr("channels as id", "label % 3 as part", "*",
      "named_struct('label', label, 'size', named_struct('height', height, 'width', width), 'data', data) as datum",
      "array(named_struct('a', label, 'b', width), named_struct('a', channels, 'b', height)) as pairs")
    compare("an LMDB", nested(lmdb), nested(read), seed, queries, areSupplied = !inPlace)
  }

  test(
    "queries of results, files and LMDBs have the answers of the same rows elsewhere, also on ranks") {
    compareAll(1, 4)
  }

  test("more queries", LongTest) {
    (2 to 20).foreach(compareAll(_, 12))
  }

  test("a size that is not known yet stops no run, and is known when its subqueries are") {
    TemporaryFolder { folder =>
      spark.range(0, 100, 1, 4).selectExpr("id", "id % 3 as part",
        "array(id) as list").write.partitionBy("part").parquet(
        s"$folder/t")
      spark.range(6).selectExpr("id", "id % 2 as kind").write.parquet(s"$folder/small")
      spark.read.parquet(s"$folder/t").createOrReplaceTempView("t")
      spark.read.parquet(s"$folder/small").createOrReplaceTempView("small")
      val queries = Seq(
        "select id, part from t where part = (select max(part) from t)" -> true,
        "select id, part from t where id > (select avg(id) from t)" -> true,
        "select id, list from t where part in (select kind from small where id > 2)" -> false,
        "select id, part from t where id > (select avg(id) from t) and part < (select avg(id) from t)" -> true,
        "with c as (select * from t where part = (select max(part) from t)) select a.id from c a join c b on a.id = b.id" -> false,
        "select t.id, t.part from t join small s on t.part = s.kind where s.id > 3" -> false,
        "select id, (select max(kind) from small) as most from t" -> true,
        "select id from t where exists (select 1 from small s where s.kind = t.part and s.id > 3)" -> false)
      for (adaptive <- Seq(true, false); (sql, isKnown) <- queries)
        within("spark.sql.adaptive.enabled" -> adaptive)(withClue(s"$sql, adaptive: $adaptive\n") {
          val source = FrameSource.of(spark.sql(sql), new Shapes)
          assert(!isKnown || source.partitionSizes.isDefined)
          assert(source.rdd.partitions.nonEmpty)
        })
    }
    for (wrong <- Seq[() => Nothing](() => throw new NoSuchMethodError("in another Spark"),
        () => throw new IllegalArgumentException("has not finished"), () => sys.error("any")))
      assert(Hint("it")(wrong()).isEmpty)
    intercept[InterruptedException](Hint("it")(throw new InterruptedException))
  }

  test("a field of a struct is that field, whatever surrounds it") {
    val schema = StructType.fromDDL(
      "id bigint, part int, s struct<a: double, b: double, name: string>, " +
        "arr array<struct<a: int, b: int>>, m map<string, struct<a: int, b: int>>, " +
        "deep struct<in: struct<x: int, y: array<struct<p: string, q: string>>>, z: int>")
    val rows = (0 until 10).map(i =>
      Row(i.toLong, i % 2, Row(i.toDouble, -i.toDouble, s"n$i"),
        Seq(Row(i, -i), Row(i + 1, -i - 1)),
        Map("k" -> Row(i, -i)), Row(Row(i, Seq(Row(s"p$i", s"q$i"))), -i)))
    throughRanks(spark.createDataFrame(rows.asJava, schema), None) { result =>
      def of(columns: String*) =
        result.orderBy("id").selectExpr(columns: _*).collect().map(_.toSeq).toSeq
      assert(of("s.b", "arr.b", "m['k'].b", "s.name", "deep.in.y[0].q",
        "deep.z") == (0 until 10).map(i =>
        Seq[Any](-i.toDouble, Seq(-i, -i - 1), -i, s"n$i", s"q$i", -i)))
      assert(result.selectExpr("sum(s.b)", "sum(m['k'].b)").head() == Row(-45.0, -45L))
      assert(result.where("s.b < -3").count() == 6 && result.where("deep.z < -3").count() == 6)
    }
  }

  test("answers of the driver, and the tasks that start ranks, are asked for any columns") {
    val starters = """{"hosts": ["localhost"], "run": "of a test"}"""
    val calls = Seq(
      spark.read.format("supply").option(Calls.Name, Starters.Call).option("json", starters).load(),
      spark.read.format("supply").option(Calls.Name, "slots").load())
    calls.foreach { data =>
      val name = data.columns.head
      assert(data.count() == 1 && data.select().collect().length == 1)
      assert(data.selectExpr(s"length($name) > 0",
        s"named_struct('b', $name).b = $name").head() == Row(true, true))
      assert(data.where(s"length($name) < 1").count() == 0)
    }
  }
}

private object QueriesSuite {
  /** What the tasks do. In local mode, tasks are in this JVM. */
  @volatile private var use: (Source, Partition, TaskContext) => Unit = _

  /** A task for each partition, which opens it itself. */
  private final class Tasks(source: Source)
      extends RDD[Int](source.rdd.sparkContext, Seq(new OneToOneDependency(source.rdd))) {
    override protected def getPartitions: Array[Partition] = source.rdd.partitions
    override def compute(split: Partition, context: TaskContext): Iterator[Int] = {
      use(source, split, context)
      Iterator.empty
    }
  }

  private def plain(value: Any): String = value match {
    case bytes: Array[Byte] => bytes.mkString("x", ",", "")
    case row: Row => row.toSeq.map(plain).mkString("{", ", ", "}")
    case list: scala.collection.Seq[_] => list.map(plain).mkString("[", ", ", "]")
    case map: scala.collection.Map[_, _] =>
      map.toSeq.map { case (key, part) => s"${plain(key)}: ${plain(part)}" }.sorted.mkString("<",
        ", ", ">")
    case other => String.valueOf(other)
  }

  private def pick[A](random: Random, from: Seq[A]): A = from(random.nextInt(from.size))

  private val leaves = Seq(BooleanType, ByteType, ShortType, IntegerType, IntegerType, LongType,
    FloatType,
    DoubleType, DoubleType, StringType, StringType, BinaryType, DateType, TimestampType,
    DecimalType(9, 2),
    DecimalType(30, 4))

  /** Rows with columns that are nested three deep. */
  private final class MadeRows(random: Random, count: Int) {
    val schema: StructType = StructType(
      Seq(StructField("id", LongType, nullable = false), StructField("s", struct(2)),
        StructField("arr", ArrayType(struct(2))),
        StructField("m", MapType(StringType, struct(2)))) ++
        (0 until 3).map(i => StructField(s"c$i", of(3))) :+ StructField("part", IntegerType))

    val rows: Seq[Row] = (0 until count).map(i =>
      Row.fromSeq(i.toLong +: schema.fields.toSeq.slice(1, schema.size - 1).map(field =>
        value(field.dataType)) :+ i % 3))

    /** With fields of the same type, so that none can be taken for another without a word. */
    private def struct(depth: Int): StructType = {
      val same = of(depth - 1)
      StructType(Seq.tabulate(2 + random.nextInt(2))(i =>
          StructField(s"f$i", if (random.nextBoolean()) same else of(depth - 1))))
    }

    private def of(depth: Int): DataType = if (depth == 0) pick(random, leaves)
    else random.nextInt(6) match {
      case 0 => pick(random, leaves)
      case 1 => ArrayType(of(depth - 1))
      case 2 => MapType(StringType, of(depth - 1))
      case _ => struct(depth)
    }

    private def value(dataType: DataType): Any = if (random.nextInt(7) == 0) null
    else dataType match {
      case StructType(fields) => Row.fromSeq(fields.toSeq.map(field => value(field.dataType)))
      case ArrayType(item, _) => Seq.fill(random.nextInt(4))(value(item))
      case MapType(_, item, _) =>
        Seq("k0", "k1", "k2").take(random.nextInt(4)).map(_ -> value(item)).toMap
      case BooleanType => random.nextBoolean()
      case ByteType => small.toByte
      case ShortType => small.toShort
      case IntegerType => small
      case LongType => small * 10000000000L
      case FloatType => small / 4f
      case DoubleType => small / 4.0
      case StringType => pick(random, Seq("", "a", "ä", "text", "𝄞")) + random.nextInt(5)
      case BinaryType => Array.fill(random.nextInt(4))(small.toByte)
      case DateType => java.sql.Date.valueOf(s"20${10 + random.nextInt(20)}-01-02")
      case TimestampType => new java.sql.Timestamp(1000L * small * 86400)
      case decimal: DecimalType =>
        new java.math.BigDecimal(java.math.BigInteger.valueOf(small.toLong), decimal.scale)
      case other => sys.error(s"no value: $other")
    }

    private def small = random.nextInt(100) - 50
  }

  /** Queries of TABLE, whose column id names a row. */
  private final class Queries(random: Random, schema: StructType) {
    private var names = 0

    private def name(): String = {
      names += 1
      s"v$names"
    }

    /** Something within a column, with its type. */
    private def any(of: String): (String, DataType) = {
      val column = pick(random, schema.fields.toSeq)
      within(s"$of.${column.name}", column.dataType)
    }

    private def within(from: String, dataType: DataType): (String, DataType) = dataType match {
      case StructType(fields) if random.nextInt(6) > 0 =>
        val field = pick(random, fields.toSeq)
        within(s"$from.${field.name}", field.dataType)
      case ArrayType(item, _) => (random.nextInt(6), item) match {
          case (0, _) => from -> dataType
          case (1, StructType(fields)) =>
            val field = pick(random, fields.toSeq)
            s"$from.${field.name}" -> ArrayType(field.dataType)
          case (2, _) =>
            val x = name()
            val (made, of) = within(x, item)
            s"transform($from, $x -> $made)" -> ArrayType(of)
          case (3, _) =>
            val x = name()
            within(s"filter($from, $x -> ${condition(within(x, item))})", dataType)
          case _ => within(s"get($from, ${random.nextInt(2)})", item)
        }
      case MapType(key, value, _) => random.nextInt(6) match {
          case 0 => s"map_keys($from)" -> ArrayType(key)
          case 1 => within(s"map_values($from)", ArrayType(value))
          case 2 =>
            val (k, v) = name() -> name()
            val (made, of) = within(v, value)
            s"transform_values($from, ($k, $v) -> $made)" -> MapType(key, of)
          case 3 => within(s"map_entries($from)",
              ArrayType(StructType(Seq(StructField("key", key), StructField("value", value)))))
          case _ => within(s"try_element_at($from, 'k${random.nextInt(2)}')", value)
        }
      case _ => from -> dataType
    }

    private def condition(of: (String, DataType)): String = of match {
      case (made, _: NumericType) =>
        s"$made ${pick(random, Seq(">", "<="))} ${random.nextInt(60) - 30}"
      case (made, BooleanType) => made
      case (made, StringType) => s"$made ${pick(random, Seq(">", "<="))} 'b'"
      case (made, ArrayType(_, _) | MapType(_, _, _)) => s"cardinality($made) > 1"
      case (made, _) => s"$made is ${pick(random, Seq("", "not "))}null"
    }

    /** Something that can be compared. */
    private def leaf(of: String): String = Iterator.continually(any(of)).collectFirst {
      case (made, dataType) if leaves.contains(dataType) => made
    }.get

    private def number(of: String): String = any(of) match {
      case (made, _: NumericType) => s"cast($made as decimal(38, 4))"
      case other => s"if(${condition(other)}, $of.id, 1)"
    }

    private def values(of: String): String =
      Seq.tabulate(1 + random.nextInt(3))(i => s"${any(of)._1} as a$i").mkString(", ")

    def sql: String = random.nextInt(14) match {
      case 0 | 1 => s"select t.id, ${values("t")} from TABLE t"
      case 2 =>
        s"select t.id, ${values("t")} from TABLE t where ${condition(any("t"))} and ${condition(any("t"))}"
      case 3 =>
        s"select sum(${number("t")}) x, min(${leaf("t")}) y, max(${leaf("t")}) z, count(distinct ${leaf("t")}) c from TABLE t"
      case 4 =>
        s"select ${leaf("t")} as k, count(*) n, sum(${number("t")}) x from TABLE t group by 1"
      case 5 =>
        s"select a.id, ${values("a")}, ${any("b")._1} as other from TABLE a join TABLE b on a.id = b.id + 1 where ${condition(
            any("b"))}"
      case 6 =>
        val kind = pick(random, Seq("left semi", "left anti"))
        s"select a.id, ${values(
            "a")} from TABLE a $kind join TABLE b on a.id = b.id + 1 and ${condition(any("b"))}"
      case 7 =>
        s"select t.id, lag(${any("t")._1}) over (order by t.id) p, max(${leaf(
            "t")}) over (partition by ${leaf("t")} order by t.id) m from TABLE t"
      case 8 =>
        s"select t.id, ${values("t")} from TABLE t where t.part = (select max(b.part) from TABLE b where ${condition(
            any("b"))})"
      case 9 =>
        s"select t.id, ${values("t")}, (select sum(${number("b")}) from TABLE b) s from TABLE t where t.id > (select avg(b.id) from TABLE b)"
      case 10 =>
        s"select a.id, ${values("a")} from TABLE a where exists (select 1 from TABLE b where b.id = a.id + 1 and ${condition(
            any("b"))})"
      case 11 =>
        s"with c as (select t.id, t.part, ${values("t")} from TABLE t) select x.id, x.a0, y.a0 as b from c x join c y on x.id = y.id - 1"
      case 12 =>
        s"select a.id, ${values("a")} from TABLE a join (select distinct b.part from TABLE b where ${condition(
            any("b"))}) d on a.part = d.part"
      case _ =>
        val lists = Iterator.continually(any("t")).take(200).collectFirst {
          case (made, ArrayType(item, _)) => made -> item
        }
        lists.fold(s"select distinct ${leaf("t")} as k from TABLE t") { case (made, item) =>
          s"select t.id, ${within("e", item)._1} as k from TABLE t lateral view outer explode($made) x as e"
        }
    }
  }
}
