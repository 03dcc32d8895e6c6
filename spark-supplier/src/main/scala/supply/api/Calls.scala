package supply.api

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{EnumSet, HexFormat, ServiceLoader, Set => JavaSet}

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{LocalScan, Scan, ScanBuilder}
import org.apache.spark.sql.types.{BinaryType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.supply.SparkInternals

import supply.core.{ConfigException, FailureText, SupplyException}
import supply.net.Listener
import supply.run.Hubs

/**
 * A call of the Python package to the driver's JVM. Any may be repeated.
 *
 * @param words its arguments
 * @param data the DataFrame of a call that is a write
 */
private[supply] final class Call(val spark: SparkSession, val words: JsonNode,
    val data: Option[DataFrame] = None) {
  /** The answer, if it is JSON. */
  val made: ObjectNode = Calls.json.createObjectNode()

  def sc: SparkContext = spark.sparkContext

  def optional(name: String): Option[String] =
    Option(words.get(name)).filterNot(_.isNull).map(_.asText)

  /** Empty if it is not there. */
  def text(name: String): String = optional(name).getOrElse("")
}

/**
 * The calls of an extension, which is in the jar or not: META-INF/services names the class. What its
 * calls name is proved by a key, as an open run is.
 */
private[supply] trait ExtensionCalls {
  def all: Map[String, Call => Any]

  /** The key of what has that name; None: nothing has. */
  def key(name: String): Option[Array[Byte]]

  /** Why the last call that failed of what has that name has. */
  def failure(name: String): Option[Throwable]
}

/**
 * All calls by name. Spark Classic makes them through py4j. A session of Spark Connect makes them by
 * the data source's options `call`, `json` and `proof`: a read has the answer, and a write sends the
 * rows of a matrix. Spark shows options to all who read its page or its event log, so no secret is
 * among them.
 */
private[supply] object Calls {
  /** The option that tells a call from other reads and writes. */
  final val Name = "call"

  private[api] val json = new ObjectMapper

  /** Each fills `made`, or returns the bytes of the answer. */
  private lazy val all: Map[String, Call => Any] =
    (Seq(SessionCalls.all, TurnCalls.all, CheckpointCalls.all, HubCalls.all) ++
      extensions.map(_.all)).reduce(_ ++ _)

  private[api] lazy val extensions: Seq[ExtensionCalls] =
    ServiceLoader.load(classOf[ExtensionCalls], getClass.getClassLoader).asScala.toSeq

  /** For Python through py4j. */
  def answer(spark: SparkSession, name: String, words: String): Array[Byte] =
    answered(name, new Call(spark, parsed(words)))

  private def answered(name: String, call: Call): Array[Byte] =
    all.getOrElse(name,
      throw new ConfigException(s"call is '$name', and this server has no such call"))(call) match {
      case bytes: Array[Byte] => bytes
      case _ => call.made.toString.getBytes(UTF_8)
    }

  /** What a read with these options has: one row with the answer, or those of the starters of ranks. */
  private[api] def table(spark: SparkSession, options: Map[String, String]): CallTable =
    (options(Name), new Call(spark, proven(options))) match {
      case (Starters.Call, call) => new CallTable("starter", new StartersScan(call, _))
      case (name, call) => new CallTable("answer", new AnswerScan(answered(name, call), _))
    }

  /** The call of a write. */
  private[api] def send(data: DataFrame, options: Map[String, String]): Unit = {
    answered(options(Name), new Call(data.sparkSession, proven(options), Some(data)))
    ()
  }

  /**
   * The arguments. Throws a ConfigException if they name an open run, or ranks, and `proof` is not
   * HMAC-SHA256 with their key, in hexadecimal, of SHA-256 of the call's name and of the arguments.
   */
  private def proven(options: Map[String, String]): JsonNode = {
    val (name, text) = options(Name) -> options.getOrElse("json", "{}")
    val words = parsed(text)
    for {
      named <- Seq("run", "ranks").map(words.path(_).asText).filter(_.nonEmpty)
      if !name.endsWith("-open")
      key <- Hubs.find(named).map(_.key) ++ extensions.flatMap(_.key(named))
    } {
      val expected = HexFormat.of().formatHex(Listener.proof(key, sha256(name), sha256(text)))
      if (!MessageDigest.isEqual(options.getOrElse("proof", "").getBytes(UTF_8),
          expected.getBytes(UTF_8)))
        throw new ConfigException(s"proof proves no key of $named")
    }
    words
  }

  private def sha256(text: String) =
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))

  private def parsed(text: String): JsonNode =
    Try(json.readTree(text)).getOrElse(throw new ConfigException(s"json is no JSON: $text"))

  /** What a failure is, for Python through py4j. Also if Spark has stopped. */
  def describe(sc: SparkContext, error: Throwable): String = {
    val made = json.createObjectNode()
    describe(sc, error, made)
    made.toString
  }

  private[api] def describe(sc: SparkContext, error: Throwable, made: ObjectNode): Unit = {
    val causes = FailureText.causes(error)
    made.put("text", FailureText.of(error, SparkInternals.hostOf(sc, _)))
    causes.collectFirst { case known: SupplyException =>
      made.put("name", known.getClass.getSimpleName).put("timeout", known.isTimeout)
    }
    made.put("missingFile",
      causes.exists(_.isInstanceOf[java.nio.file.NoSuchFileException]))
    ()
  }
}

/** One column of bytes. */
private[api] final class CallTable(column: String, scan: StructType => Scan) extends Table
    with SupportsRead {
  override def name(): String = s"supply $column"

  override val schema: StructType = new StructType().add(column, BinaryType, nullable = false)

  override def capabilities(): JavaSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () => scan(schema)
}

/** The answer to a call, in one row, for which Spark runs no job. */
private final class AnswerScan(call: => Array[Byte], columns: StructType) extends Scan
    with LocalScan {
  private lazy val answer = call

  override def readSchema(): StructType = columns

  /** Spark asks when it plans the query, and may ask twice. */
  override def rows(): Array[InternalRow] = Array(InternalRow(answer))
}
