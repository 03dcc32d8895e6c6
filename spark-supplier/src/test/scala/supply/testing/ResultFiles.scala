package supply.testing

import java.nio.file.{Path, Paths}

import org.apache.spark.sql.{DataFrame, DataFrameReader, SparkSession}

import supply.pair.ConfigFiles
import supply.protocol.{Column, Schema}

/** Result files of some ranks in a folder, with the columns id (bigint) and label (string). */
final class ResultFiles(val folder: Path, ranks: Int) {
  val configFiles: ConfigFiles = TestRank.configFiles(folder, ranks)

  def path(rank: Int, name: String = "r"): Path =
    Paths.get(s"${configFiles.read()(rank).mappedFile}.$name.result")

  def unsealed(rank: Int): Path = Paths.get(path(rank).toString + ".unsealed")

  /** Seals the file of a rank, with these ids in blocks of `blockRows`. */
  def seal(rank: Int, ids: Seq[Long], blockRows: Int = 100, name: String = "r"): Path =
    BlockFileBytes.write(path(rank, name), ResultFiles.bytes(rank, ids, blockRows))

  /** The sealed files of the folder. */
  def left: Seq[String] = folder.toFile.list().toSeq.filter(_.endsWith(".result"))

  def reader(spark: SparkSession, options: (String, Any)*): DataFrameReader =
    (Seq("results" -> "r", "ranks" -> ranks, "timeout" -> 20,
      "mapped-files" -> configFiles
        .mappedFiles, "named-pipes" -> configFiles.namedPipes) ++ options).foldLeft(
      spark.read.format("supply")) { case (reader, (name, value)) =>
      reader.option(name, value.toString)
    }

  def load(spark: SparkSession, options: (String, Any)*): DataFrame =
    reader(spark, options: _*).load()
}

object ResultFiles {
  val schema: Schema = Schema(IndexedSeq(Column("id", "l"), Column("label", "u")))

  def apply[A](ranks: Int)(body: ResultFiles => A): A =
    TemporaryFolder(folder => body(new ResultFiles(folder, ranks)))

  def bytes(rank: Int, ids: Seq[Long], blockRows: Int = 100, run: Long = 0): Array[Byte] =
    BlockFileBytes(schema, ids.grouped(blockRows).map(in => Seq(in, in.map(_.toString))).toSeq,
      rank, run = run)
}
