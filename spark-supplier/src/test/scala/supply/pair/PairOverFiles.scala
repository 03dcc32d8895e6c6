package supply.pair

import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, Paths, StandardOpenOption}

import supply.bench.DatumCursor
import supply.block.BlockWriter
import supply.lmdb.Datum
import supply.protocol.Layout.{MappedFileHeader => At}

/**
 * The golden files (proto/golden/README.md), and pairs over plain files instead of pipes, to give a
 * task any bytes.
 */
trait PairOverFiles {
  protected val golden: Path = Paths.get("../proto/golden")

  protected val elements: Seq[Datum.Tuple] = Seq(
    ("00000005", "7", 1, 2, 2, false, Array[Byte](0, 1, 2, 3)),
    ("a/b\\\u00ff", "-1", 0, 0, 0, true, Array.emptyByteArray),
    ("", "0", 3, 1, 1, false, Array(0xff, 0x80, 0x00).map(_.toByte)))

  protected def read(name: String): Array[Byte] = Files.readAllBytes(golden.resolve(name))

  private def channel(path: Path): FileChannel =
    FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.READ,
      StandardOpenOption.WRITE)

  /** A pair over plain files: the rank's golden files, and a new file for the notifications. */
  protected def withPair[A](folder: Path, mapped: Array[Byte], requests: Array[Byte])(
      body: Pair => A): A =
    withPairAndParts(folder, mapped, requests)((pair, _, _) => body(pair))

  protected def withPairAndParts[A](folder: Path, mapped: Array[Byte], requests: Array[Byte])(
      body: (Pair, MappedFile, NotificationPipe) => A): A = {
    val mappedFile = Files.write(folder.resolve("mapped"), mapped)
    val requestFile = Files.write(folder.resolve("requests"), requests)
    val file = MappedFile.open(mappedFile).get
    file.check()
    file.run = 0x1112131415161718L
    file.setTask(4343, 0, 0)
    val notifications = new NotificationPipe(() => channel(folder.resolve("notifications")))
    val pair = new Pair(PairPaths(mappedFile.toString, "", "", "golden"),
      Vector(ReaderFiles("golden pair", file, new RequestPipe(() => channel(requestFile)),
          notifications)), 1)
    try body(pair, file, notifications)
    finally pair.close()
  }

  /** rank.mapped with another number of released blocks; nothing is published yet. */
  protected def released(blocks: Byte): Array[Byte] =
    read("rank.mapped").updated(At.released, blocks)

  /** Publishes until the requests have been read. */
  protected def consume(pair: Pair): Unit = {
    pair.position
    pair.bindPlan(1)
    val cursor = new DatumCursor(Iterator.continually(elements.head))
    val writer = new BlockWriter(pair, Datum.schema, Some(Datum.Data), 1)
    writer.startAt(0, 0, 0)
    while (cursor.next()) writer.append(cursor)
  }
}
