package supply.lmdb

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{Partition, SparkContext, TaskContext}

import supply.core.SourceException
import supply.protocol.Schema
import supply.run.Progress
import supply.source.{ForeignFile, KeepingCursor, KeepingSource}

/**
 * The Datums of an LMDB, in key order, as rows of Spark, each of which is valid until the next one. The
 * partitions' sizes differ by at most one entry; some may be empty. Nobody may write to the file
 * meanwhile.
 */
private[supply] final class LmdbRDD private[supply] (
    sc: SparkContext, location: LmdbLocation,
    @transient private val plan: IndexedSeq[LmdbPartition])
    extends RDD[InternalRow](sc, Nil) {
  override protected def getPartitions: Array[Partition] = plan.toArray[Partition]

  /** Entries of each partition. */
  def partitionEntries: IndexedSeq[Long] =
    partitions.toIndexedSeq.map(_.asInstanceOf[LmdbPartition].entries)

  /** Which entries of which version of which file they are. For the driver. */
  def identity: String =
    (location.identity +: plan.headOption.toSeq.flatMap(_.skip).map(new String(_, UTF_8)))
      .mkString("\n")

  /** Size of the file. For the driver. */
  def bytes: Long = location.bytes

  /** The partition's elements on LMDB's own pages, for this task. The caller closes the cursor. */
  def cursor(partition: Partition, context: TaskContext): LmdbCursor = {
    val path = location.local()
    new LmdbCursor(path, partition.asInstanceOf[LmdbPartition], mappedWindow(path, context))
  }

  /** The cursor for ranks that read the data of these columns in place. */
  def inPlaceCursor(partition: Partition, context: TaskContext,
      columns: IndexedSeq[Int] = Datum.Columns): LmdbInPlaceCursor = {
    val path = ForeignFile.realPath(location.local())
    val window = mappedWindow(path, context)
    new LmdbInPlaceCursor(LmdbEnvironments.foreignFile(path), partition.asInstanceOf[LmdbPartition],
      columns, window)
  }

  /** How much of the file the task maps. If it may map all, the file stays mapped until it ends. */
  private def mappedWindow(path: String, context: TaskContext): Long = {
    val window = MappedWindow.bytes
    if (window == Long.MaxValue) LmdbEnvironments.keepFor(context, path)
    window
  }

  /** Says that a run copies data that its ranks could read in place, if they can, as far as this JVM can tell; `option` makes them. */
  def noteCopied(option: String): Unit = if (location.canBeReadInPlace)
    Progress.note(s"the ranks could read this LMDB in place, without copies: use $option")

  override def compute(partition: Partition, context: TaskContext): Iterator[InternalRow] = {
    val cursor = this.cursor(partition, context)
    context.addTaskCompletionListener[Unit](_ => cursor.close())
    val row = new DatumRow
    def isNext = cursor.next() || {
      cursor.close()
      false
    }
    Iterator.continually(row.values).takeWhile(_ => isNext).map { values =>
      cursor.write(row)
      values
    }
  }
}

private[supply] object LmdbRDD {
  /**
   * `path` is a directory with a data.mdb, or a data file, that driver and executors see. `skip`: keys
   * whose values are no Datums.
   */
  def open(sc: SparkContext, path: String, partitions: Int, skip: Seq[String] = Nil): LmdbRDD = {
    require(partitions >= 1, s"an RDD has at least 1 partition, not $partitions")
    val file = LmdbFile.open(path)
    new LmdbRDD(sc, SharedPath(file.path), LmdbPartition.plan(file, partitions, skip))
  }
}

/**
 * An LMDB, read from its own pages, without a tuple in between.
 *
 * @param inPlace whether the ranks read the data there, too, instead of copies
 * @param columns which columns of a Datum, in their order; some of them only in place
 */
private[supply] final class LmdbSource(
    override val rdd: LmdbRDD, inPlace: Boolean, columns: IndexedSeq[Int] = Datum.Columns)
    extends KeepingSource {
  private def all = if (inPlace) Datum.inPlaceSchema else Datum.schema
  override def schema: Schema = Schema(columns.map(all.columns))
  override def mainColumn: Option[Int] = Some(columns.indexOf(Datum.Data)).filter(_ >= 0)
  override def partitionElements: Option[IndexedSeq[Long]] = Some(rdd.partitionEntries)
  override def identity: Option[String] = Some(rdd.identity)

  /** Without the data nearly nothing of that is left. */
  override def bytes: Option[Long] = mainColumn.map(_ => rdd.bytes)

  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    if (inPlace) rdd.inPlaceCursor(partition, context, columns) else rdd.cursor(partition, context)
}

/** Where the tasks find an LMDB. */
private[supply] sealed trait LmdbLocation extends Serializable {
  /** The data file on the node of this JVM. */
  def local(): String

  /** Which version of which file it is. For the driver. */
  def identity: String

  /** Size of the data file. For the driver. */
  def bytes: Long

  /** Whether ranks can read the data file in place, as far as this JVM can tell. */
  def canBeReadInPlace: Boolean
}

/** A path that every node sees. */
private[supply] final case class SharedPath(path: String) extends LmdbLocation {
  override def local(): String = path

  override def identity: String =
    s"${file.toRealPath()}\n$bytes\n${Files.getLastModifiedTime(file).to(NANOSECONDS)}"

  override def bytes: Long = Files.size(file)

  private def file = Paths.get(path)

  override def canBeReadInPlace: Boolean =
    try {
      ForeignFile.find(path)
      true
    } catch { case _: SourceException => false }
}

/** A file in HDFS, with a copy on each node that reads it. */
private[supply] final case class Remote(
    file: RemoteFile, cache: CacheSettings) extends LmdbLocation {
  override def local(): String = fetch(_ => ())

  override def identity: String = file.describe

  override def bytes: Long = file.length

  /** A cache is on a local disk. */
  override def canBeReadInPlace: Boolean = true

  def fetch(fetched: Long => Unit): String = NodeCache.get(file, cache, fetched).toString
}
