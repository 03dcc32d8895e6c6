package supply.bench

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.nio.file.{Files, Path, Paths, StandardOpenOption}

import supply.lmdb.Datum
import supply.pair.MappedFile

/**
 * Writes a new file into `folder` (in memory) for each partition, as spark-mpi-adapter does, for
 * bench/c/file_consumer.c, which reads and removes one file while the next is written.
 */
private[bench] final class FileBaseline(port: Int, folder: String, cached: CachedElements,
    mapped: Boolean) extends Baseline {
  private val consumer = new Consumer(port)
  private val (count, bytes) = (cached.count, cached.bytes)
  private val lines = ByteBuffer.allocate(4096)
  private val header = ByteBuffer.allocate(FileBaseline.HeaderBytes).order(ByteOrder.LITTLE_ENDIAN)
  private var files = 0L

  override def measure(): Measured = {
    val meter = new Meter
    cached.partitions.foreach { tuples =>
      files += 1
      val path = Paths.get(folder, s"partition-$port-$files")
      write(path, tuples)
      announce(path.toString)
    }
    announce("")
    consumer.awaitRead()
    meter.measured(count, bytes)
  }

  private def announce(line: String): Unit =
    consumer.send(lines.put(line.getBytes(UTF_8)).put('\n'.toByte))

  private def write(path: Path, tuples: Array[Datum.Tuple]): Unit = {
    val channel = FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.READ,
      StandardOpenOption.WRITE)
    try if (mapped) writeMapped(channel, tuples) else tuples.foreach(writeOne(channel, _))
    finally channel.close()
  }

  private def writeMapped(channel: FileChannel, tuples: Array[Datum.Tuple]): Unit = {
    val size = tuples.iterator.map(t =>
      FileBaseline.HeaderBytes.toLong + FileBaseline.padded(t._1.length) + FileBaseline.padded(
        t._7.length)).sum
    val file = channel.map(FileChannel.MapMode.READ_WRITE, 0, size)
    file.order(ByteOrder.LITTLE_ENDIAN)
    tuples.foreach { tuple =>
      file.putInt(tuple._7.length).putInt(tuple._1.length)
      putPadded(file, tuple._1.getBytes(ISO_8859_1))
      putPadded(file, tuple._7)
    }
    MappedFile.unmap(file)
  }

  private def putPadded(file: ByteBuffer, value: Array[Byte]): Unit = {
    file.put(value)
    file.position(file.position() + FileBaseline.padded(value.length) - value.length)
    ()
  }

  private def writeOne(channel: FileChannel, tuple: Datum.Tuple): Unit = {
    header.clear()
    header.putInt(tuple._7.length).putInt(tuple._1.length).flip()
    val parts = Array(header, ByteBuffer.wrap(tuple._1.getBytes(ISO_8859_1)),
      padding(tuple._1.length), ByteBuffer.wrap(tuple._7),
      padding(tuple._7.length))
    while (parts.exists(_.hasRemaining)) channel.write(parts)
  }

  private def padding(bytes: Int): ByteBuffer =
    ByteBuffer.allocate(FileBaseline.padded(bytes) - bytes)

  override def close(): Unit = {
    consumer.close()
    (1L to files).foreach(n => Files.deleteIfExists(Paths.get(folder, s"partition-$port-$n")))
  }
}

private object FileBaseline {
  final val HeaderBytes = 8

  def padded(bytes: Int): Int = (bytes + 7) / 8 * 8
}
