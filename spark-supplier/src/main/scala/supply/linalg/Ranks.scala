package supply.linalg

import java.util.UUID
import java.util.concurrent.ConcurrentLinkedQueue

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.{DataFrame, SparkSession}

import scala.jdk.CollectionConverters._

import supply.core.{Buffers, ConfigException, ContractException, RankEndedException, RankException}
import supply.plan.Shuffle
import supply.rows.RowSource
import supply.run.{SupplyJob, TaskSlots}
import supply.task.SupplySettings

/**
 * The ranks of a running `supply-server`, which hold matrices of this Spark program and run
 * routines on them (docs/OFFLOAD.md). If they are on other nodes than the driver, a command is a job
 * with a task on each of their nodes. For several threads: one command at a time.
 * Call [[attach]] first, and [[detach]] or [[close]] at the end.
 *
 * settings: ranks, config files, host file and timeout, as those of the ranks. resultsFolder: beginning
 * of the names of folders on each node for the rows of [[Matrix.toDF]].
 */
final class Ranks(spark: SparkSession, settings: SupplySettings, resultsFolder: String)
    extends AutoCloseable {
  import Ranks._

  private val sc = spark.sparkContext
  settings.check()
  private val commands = new RankCommands(sc, settings, settings.readHosts())
  // So that matrices of one DataFrame have the same rows on the same ranks.
  private val inOrder = settings.copy(shuffle = Shuffle.Off)
  /** Of this object. The ranks refuse commands of others until it detaches. */
  private val program = UUID.randomUUID().toString
  private var isAttached = false
  private var nextHandle = 1L
  @volatile private var lost = Option.empty[String]
  private val forgotten = new ConcurrentLinkedQueue[Long]

  /** How many there are. */
  def size: Int = settings.ranks

  /** Whether they have ended, or this program has left them: all matrices are gone. */
  def areGone: Boolean = lost.isDefined

  /**
   * Makes the ranks those of this program, before anything else, and checks that there are as many as
   * the settings say. Waits for an executor with a slot for each rank on its node. takeOver: a program
   * that they already belong to loses its matrices; otherwise that is a RankException.
   */
  def attach(takeOver: Boolean = false): Unit = {
    TaskSlots.require(sc, commands.hosts, settings.timeout)
    // Each rank answers this alone, also if the settings say too few.
    ask("status")(_ => ()).zipWithIndex.foreach { case (answer, place) =>
      checkPlace(answer, place)
    }
    ask("attach", continues = true)(_.put("name", programName).put("take_over", takeOver))
    isAttached = true
  }

  private def programName: String =
    s"'${sc.appName}' (${sc.applicationId}, on ${sc.getConf.get("spark.driver.host", "this node")})"

  private def checkPlace(answer: Reply, place: Int): Unit = {
    val (rank, ranks) = (answer.status.path("rank").asInt, answer.status.path("ranks").asInt)
    if (rank != place || ranks != settings.ranks) throw new ConfigException(
      s"the server of place $place says that it is rank $rank of $ranks, not $place of ${settings.ranks}: " +
        "give both sides the same host file and number of ranks")
  }

  /**
   * Sends the rows of a DataFrame to the ranks. They stay on the node of their partition, in its
   * order. Throws a SupplyException for bad rows, or too little memory.
   */
  def matrix(data: DataFrame, rows: MatrixRows): Matrix = synchronized {
    val columns = rows.sparseColumns(data)
    val selected = rows.of(data, columns)
    // Refuses wrong columns before a rank waits for them.
    val source = RowSource.withBytesOfLists(selected, rows.names)
    newHandles(1) { handle =>
      ask("receive") {
        _.put("handle", handle).put("columns", columns.getOrElse(0L)).put("numbers",
          rows.numbers(selected))
          .put("expected_rows", ExpectedRows.count(selected))
          .put("row_bytes", ExpectedRows.bytesOfRow(selected))
      }
      SupplyJob.run(sc, inOrder)(source)
      val answers = ask("received", continues = true)(_.put("handle", handle))
      Matrix.of(this, answers.head.status)
    }
  }

  /**
   * Calls a routine of a library. Returns its results by name, in its order. arguments: values of
   * its first parameters. parameters: others by name. A value is a matrix, an integer, a number or a
   * text.
   */
  def call(library: String, routine: String, arguments: Seq[Any], parameters: Map[String, Any])
      : Seq[(String, Matrix)] = newHandles(resultsMax) { handle =>
    val replies = ask("call") { command =>
      command.put("library", library).put("routine", routine).put("handle", handle)
      val inOrder = command.putArray("arguments")
      arguments.zipWithIndex.foreach { case (value, i) =>
        inOrder.add(encoded(s"number $i", value))
      }
      val named = command.putObject("parameters")
      parameters.foreach { case (name, value) =>
        named.set[JsonNode](name, encoded(s"'$name'", value))
      }
    }
    replies.head.status.path("results").elements.asScala.map { result =>
      result.path("name").asText -> Matrix.of(this, result)
    }.toSeq
  }

  private def encoded(name: String, value: Any): JsonNode = value match {
    case matrix: Matrix if matrix.ranks ne this =>
      throw new ConfigException(s"parameter $name: the matrix belongs to other ranks")
    case matrix: Matrix => json.createObjectNode().put("matrix", matrix.handle)
    case _: Int | _: Long | _: Double | _: String => json.valueToTree[JsonNode](value)
    case null => throw new ConfigException(
        s"parameter $name is null: leave it out, so that it has its default")
    case other => throw new ConfigException(
        s"parameter $name is a ${other.getClass.getName}: give a matrix, an integer, a number or a text")
  }

  private[linalg] def fetch(matrix: Matrix): Seq[Array[Byte]] = {
    val bytes = BigInt(matrix.rows) * matrix.columns * java.lang.Double.BYTES
    if (bytes > Buffers.MostBytes) throw new ConfigException(
      f"$matrix has ${bytes.toDouble / 1e9}%.1f GB, and the driver takes at most 2 GiB of a matrix: " +
        "read its rows as a DataFrame (to_df, toDF)")
    val resultMax = sc.getConf.getSizeAsBytes("spark.driver.maxResultSize", "1g")
    if (!commands.areHere && resultMax > 0 && bytes > resultMax) throw new ConfigException(
      f"$matrix has ${bytes.toDouble / 1e9}%.1f GB, and the driver takes ${resultMax / 1e9}%.1f GB from tasks: " +
        "raise spark.driver.maxResultSize, or read its rows as a DataFrame (to_df, toDF)")
    val parts = ask("fetch", bytes.toLong)(_.put("handle", matrix.handle)).map(_.data)
    val received = parts.map(_.length.toLong).sum
    if (received != bytes) throw new ContractException(
      s"the ranks have sent $received bytes of $matrix, which has $bytes")
    parts.filter(_.nonEmpty)
  }

  /** The rows of the matrix, where the ranks are: "key", if they have keys, and "row". */
  private[linalg] def read(matrix: Matrix): DataFrame =
    spark.read.format("supply").options(write(matrix)).load()

  /** Lets the ranks write the rows of the matrix now. Returns the options of a read of them. */
  private[supply] def write(matrix: Matrix): Map[String, String] = synchronized {
    val folder = s"$resultsFolder-$nextHandle"
    nextHandle += 1
    ask("write")(_.put("handle", matrix.handle).put("folder", folder))
    val files = Map("mapped-files" -> settings.mappedFiles, "named-pipes" -> settings.namedPipes) ++
      settings.hosts.map("hosts" -> _)
    files.map { case (option, name) =>
      settings.texts.get(name).fold(option -> name)(text => s"$option-text" -> text)
    } ++ Map("results" -> "matrix", "results-folder" -> folder, "ranks" -> settings.ranks.toString,
      "timeout" -> settings.timeout.toString)
  }

  /** Ranks that are gone hold nothing. */
  private[linalg] def drop(matrix: Matrix): Unit = synchronized {
    if (lost.isEmpty) ask("drop")(_.put("handle", matrix.handle))
    ()
  }

  /** The next command drops it, before anything else. Does not wait for one that runs. */
  private[linalg] def forget(matrix: Matrix): Unit = {
    forgotten.add(matrix.handle)
    ()
  }

  /** How much of the running routine is done, from 0 to 1, as it says. Any thread may ask. */
  def progress: Double = commands.progress

  /**
   * Cancels the call that runs, from another thread: it throws. While [[matrix]] sends rows, it
   * throws when all are sent; cancel Spark's job, too (by a job tag) to end it at once.
   */
  def cancel(): Unit = commands.cancel()

  /** Drops all matrices. The ranks wait for another program. */
  def detach(): Unit = leave("detach", "this program has left the ranks")

  /** Ends the ranks. Their matrices are gone. */
  override def close(): Unit = leave("end", "the ranks were closed")

  private def leave(command: String, text: String): Unit = synchronized {
    try if (lost.isEmpty) ask(command)(_ => ())
    finally lost = lost.orElse(Some(text))
  }

  /** body: gets the first of new handles. If it fails, the ranks drop what they made of them. */
  private def newHandles[A](count: Long)(body: Long => A): A = synchronized {
    val first = nextHandle
    nextHandle += count
    try body(first)
    catch {
      case e: Throwable =>
        (first until nextHandle).foreach(forgotten.add)
        throw e
    }
  }

  /**
   * Sends a command to all ranks, and returns their answers in rank order; dataMax: of one rank;
   * continues: whether it is a later command of the same call.
   */
  private def ask(name: String, dataMax: Long = 0, continues: Boolean = false)(
      fill: ObjectNode => Unit): Seq[Reply] =
    synchronized {
      lost.foreach(text => throw new RankEndedException(s"all matrices are gone: $text"))
      val dropped = forgotten.asScala.toSeq
      val command = Command.of(name, dataMax) { command =>
        command.put("program", program)
        fill(command)
        val drop = command.putArray("drop")
        dropped.foreach(drop.add(_))
      }
      val answers = commands.send(command, continues)
      val failed = answers.collectFirst { case Answer.Failed(text) => text }
      // What a rank says comes before what the end of another one looks like.
      val lastWords = answers.collectFirst { case Answer.Lost(text, true, _) => text }
      answers.collectFirst { case lost: Answer.Lost => lost }.foreach { lost =>
        val words = lastWords.orElse(failed)
        lose(words.getOrElse(lost.text), isTimeout = words.isEmpty && lost.isTimeout)
      }
      // A command that no rank has begun has dropped nothing.
      failed.foreach(text => throw new RankException(text))
      dropped.foreach(_ => forgotten.poll())
      answers.collect { case Answer.Done(line, data) => Reply(json.readTree(line), data) }
    }

  private def lose(text: String, isTimeout: Boolean): Nothing = {
    lost = Some(text)
    throw new RankEndedException(
      if (isAttached) s"$text; all matrices of these ranks are gone" else text, isTimeout)
  }
}

private object Ranks {
  final case class Reply(status: JsonNode, data: Array[Byte])

  private val json = new ObjectMapper

  /** SUPPLY_ROUTINE_RESULTS_MAX of supply_routine.h. */
  private val resultsMax = 8L
}
