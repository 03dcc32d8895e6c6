package supply.tools

import java.io.{File, FileInputStream, IOException, OutputStream}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.security.{DigestInputStream, MessageDigest}
import java.util.zip.{ZipEntry, ZipOutputStream}

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import supply.core.ConfigException

/** Spark's jars as one archive on the cluster, uploaded once: each submission saves 400 MB. */
private[supply] object JarsArchive {
  /** Returns where the archive of those jars is, and uploads it first if it is not there. */
  def upload(jarsFolder: File, progress: String => Unit): String = {
    val jars = Option(jarsFolder.listFiles()).toSeq.flatten.filter(
      _.getName.endsWith(".jar")).sortBy(_.getName)
    if (jars.isEmpty)
      throw new ConfigException(s"$jarsFolder holds no jars: SPARK_HOME must name a whole Spark")
    val fs = FileSystem.get(new Configuration())
    if (fs.getScheme == "file")
      throw new ConfigException(
        "Hadoop's configuration names no file system of a cluster (fs.defaultFS): set HADOOP_CONF_DIR")
    try {
      val folder = new Path(fs.getHomeDirectory, ".supply")
      val archive = new Path(folder, s"spark-jars-${fingerprint(jars)}.zip")
      if (!fs.exists(archive)) {
        val bytes = jars.map(_.length).sum
        progress(s"uploading Spark's jars, once: ${bytes / 1000000} MB to $archive")
        fs.mkdirs(folder)
        // It gets its name when it is complete.
        val part = new Path(folder, s".${archive.getName}-${java.util.UUID.randomUUID()}")
        try {
          write(fs, jars, part)
          if (!fs.rename(part, archive) && !fs.exists(archive))
            throw new IOException(s"could not rename $part to $archive")
        } finally fs.delete(part, false)
      }
      archive.toString
    } catch {
      case e: IOException =>
        throw new ConfigException(s"cannot upload Spark's jars to ${fs.getUri}: $e", e)
    }
  }

  /** Differs if any jar differs: a Spark that was built again has the same names. */
  private[tools] def fingerprint(jars: Seq[File]): String = {
    val sha = MessageDigest.getInstance("SHA-256")
    jars.foreach { jar =>
      sha.update(s"${jar.getName} ${jar.length}\n".getBytes(UTF_8))
      Using.resource(new DigestInputStream(new FileInputStream(jar), sha))(
        _.transferTo(OutputStream.nullOutputStream))
    }
    f"${ByteBuffer.wrap(sha.digest()).getLong}%016x"
  }

  private def write(fs: FileSystem, jars: Seq[File], to: Path): Unit = {
    val zip = new ZipOutputStream(fs.create(to, true))
    // Jars are already compressed.
    zip.setLevel(0)
    try {
      // `finally` does not run if the JVM is asked to end.
      fs.deleteOnExit(to)
      jars.foreach { jar =>
        zip.putNextEntry(new ZipEntry(jar.getName))
        Files.copy(jar.toPath, zip)
        zip.closeEntry()
      }
    } finally zip.close()
  }
}
