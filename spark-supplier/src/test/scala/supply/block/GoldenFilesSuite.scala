package supply.block

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumCursor
import supply.core.{Deadline, RankEndedException, SupplyException}
import supply.lmdb.Datum
import supply.pair.{MappedFile, NotificationPipe, Pair, PairOverFiles}
import supply.protocol.{EpochCounts, Exchange, Layout, Notification, Schema}
import supply.protocol.Layout.{MappedFileHeader => At}
import supply.rows.NestedRows
import supply.source.ForeignFile
import supply.testing.TemporaryFolder

/**
 * Files that each side writes and the other must read, or must refuse (proto/golden/README.md). If
 * SUPPLY_WRITE_GOLDEN is set, the task's files are written again.
 */
class GoldenFilesSuite extends AnyFunSuite with PairOverFiles {

  /** rank.mapped before the rank has released a block or failed. */
  private def fresh: Array[Byte] = {
    val bytes = ByteBuffer.wrap(read("rank.mapped"))
    bytes.putLong(At.released, 0)
    bytes.put(At.rankFailure, new Array[Byte](Layout.FailureTextBytes))
    bytes.array()
  }

  /** The same, of a rank whose program exchanges elements. */
  private def freshWithExchange: Array[Byte] = {
    val bytes = ByteBuffer.wrap(fresh).order(ByteOrder.LITTLE_ENDIAN)
    bytes.putInt(At.accepts, bytes.getInt(At.accepts) | Layout.Constant.ACCEPTS_EXCHANGE)
    bytes.array()
  }

  /** The same with more slots. */
  private def freshWith(blockCount: Int): Array[Byte] = {
    val bytes = ByteBuffer.wrap(fresh ++ new Array[Byte]((blockCount - 2) * 4096)).order(
      ByteOrder.LITTLE_ENDIAN)
    bytes.putInt(At.blockCount, blockCount)
    bytes.putLong(At.fileBytes, bytes.capacity())
    bytes.array()
  }

  /** The mapped file and the notifications that the task writes. */
  private def written(mapped: Array[Byte])(
      body: (Pair, MappedFile, NotificationPipe) => Unit): (Array[Byte], Array[Byte]) =
    TemporaryFolder { folder =>
      withPairAndParts(folder, mapped, Array.emptyByteArray) { (pair, file, notifications) =>
        pair.bindPlan(0x0102030405060708L)
        body(pair, file, notifications)
      }
      (Files.readAllBytes(folder.resolve("mapped")),
        Files.readAllBytes(folder.resolve("notifications")))
    }

  /** Epoch 0. */
  private def writeEpoch(pair: Pair): Unit = {
    writeBlock(pair, partition = 2, first = 5, elements)
    pair.publishEndOfEpoch(0)
  }

  private def writeBlock(pair: Pair, partition: Int, first: Long, of: Seq[Datum.Tuple],
      schema: Schema = Datum.schema): Unit = {
    val writer = new BlockWriter(pair, schema, Some(Datum.Data), Int.MaxValue)
    writer.startAt(epoch = 0, partition, first)
    val cursor = new DatumCursor(of.iterator)
    while (cursor.next()) writer.append(cursor)
    writer.flush()
  }

  private def writtenOnce() = written(fresh) { (pair, file, notifications) =>
    pair.announceCounts(EpochCounts(elements = 60, steps = 20))
    writeEpoch(pair)
    file.taskFailure = "the test failed"
    assert(notifications.write(Notification.failure(file.generation), new Deadline(1)))
  }

  private def writtenExchange() = written(freshWithExchange) { (pair, _, _) =>
    pair.writeOrCheckExchange(Exchange.all(seed = 0x5152535455565758L, fraction = 250000))
    writeEpoch(pair)
  }

  private def writtenWide() = written(fresh) { (pair, _, _) =>
    val longer = Datum.schema.columns.map(column => column.copy(name = column.name * 50))
    writeBlock(pair, partition = 2, first = 5, elements,
      Schema(Datum.schema.columns.take(1) ++ longer.tail))
    pair.publishEndOfEpoch(0)
  }

  private def writtenNested() = written(fresh) { (pair, _, _) =>
    val writer = new BlockWriter(pair, NestedRows.source.schema, None, Int.MaxValue)
    writer.startAt(epoch = 0, partition = 2, element = 5)
    val cursor = NestedRows.cursor
    while (cursor.next()) writer.append(cursor)
    writer.flush()
    pair.publishEndOfEpoch(0)
  }

  /** task-in-place.foreign. A rank that reads it writes the entry of its own copy. */
  private lazy val foreign = ForeignFile("/golden/task-in-place.foreign", 0x2122232425262728L,
    0x3132333435363738L, read("task-in-place.foreign").length.toLong, 0x4142434445464748L)

  private def writtenInPlace() = written(fresh) { (pair, _, _) =>
    val writer = new BlockWriter(pair, Datum.inPlaceSchema, Some(Datum.Data), Int.MaxValue)
    writer.startAt(epoch = 0, partition = 2, element = 5)
    val cursor = new InPlaceCursor(read("task-in-place.foreign"), foreign)
    while (cursor.next()) writer.append(cursor)
    writer.flush()
    pair.publishEndOfEpoch(0)
  }

  /** The blocks of epoch 0 in the resident file: one of partition 2, and one of partition 4. */
  private def writtenResidentFile(inFile: Array[Byte] => Unit) = written(freshWith(10)) {
    (pair, file, _) =>
      TemporaryFolder { folder =>
        val names = ResidentFileNames(folder, pair.paths)
        val writer = ResidentFileWriter.create(names,
          ResidentFileHeader.of(pair, Datum.schema, file.run),
          new ResidentSpace("", folder, None, None))
        pair.copyTo(writer)
        for ((partition, datums) <- Seq(2 -> elements.take(2), 4 -> elements.drop(2)))
          writeBlock(pair, partition, first = 0, datums)
        pair.publishEndOfEpoch(0)
        val bytes = Files.readAllBytes(names.ofRun)
        inFile(bytes)
        // A rank that reads it writes the entry of its own copy.
        val entry = ForeignFile("/golden/task-resident-file.resident", 0x2122232425262728L,
          0x3132333435363738L, bytes.length.toLong, 0x4142434445464748L)
        val blocks = Seq(2, 4).flatMap(writer.sealedFile.get.from(_, 0).get)
        val resident = new ResidentFile(entry, blocks.toIndexedSeq)
        for ((epoch, partitions) <- Seq(1 -> Seq(4, 2), 2 -> Seq(2, 4))) {
          partitions.flatMap(resident.from(_, 0).get).foreach(pair.publish(resident.foreign, _,
              epoch))
          pair.publishEndOfEpoch(epoch)
        }
        pair.publishEndOfData()
      }
  }

  private val residentFile = golden.resolve("task-resident-file.resident")

  Seq(
    ("task", () => writtenOnce()),
    ("task-wide", () => writtenWide()),
    ("task-nested", () => writtenNested()),
    ("task-exchange", () => writtenExchange()),
    ("task-in-place", () => writtenInPlace()),
    ("task-resident-file",
      () =>
        writtenResidentFile { bytes =>
          if (sys.env.contains("SUPPLY_WRITE_GOLDEN")) Files.write(residentFile, bytes)
          assert(bytes.sameElements(Files.readAllBytes(residentFile)))
        })).foreach {
    case (name, write) =>
      if (sys.env.contains("SUPPLY_WRITE_GOLDEN")) {
        val (mapped, notifications) = write()
        Files.write(golden.resolve(s"$name.mapped"), mapped)
        Files.write(golden.resolve(s"$name.notifications"), notifications)
      }

      test(s"the task writes its golden files $name, to the byte") {
        val (mapped, notifications) = write()
        assert(notifications.sameElements(read(s"$name.notifications")))
        assert(mapped.sameElements(read(s"$name.mapped")))
      }

      test(s"the task's next attempt reads $name, and sends the same notifications again") {
        TemporaryFolder { folder =>
          withPair(folder, read(s"$name.mapped"), Array.emptyByteArray)(_.resume())
          val notifications = read(s"$name.notifications")
          val blocks = ByteBuffer.wrap(read(s"$name.mapped")).order(
            ByteOrder.LITTLE_ENDIAN).getLong(At.published).toInt
          assert(Files.readAllBytes(folder.resolve("notifications")).sameElements(
              notifications.take(64 * blocks)))
        }
      }
  }

  test("the rank's golden files are read: header, ATTACH, RELEASE, STOP") {
    TemporaryFolder { folder =>
      withPair(folder, released(0), read("rank.requests")) { pair =>
        assert(pair.blockBytes == 4096 && pair.rank == 1)
        assert(intercept[RankEndedException](consume(pair)).getMessage.endsWith(
            "the rank failed: the test gave up"))
      }
    }
    TemporaryFolder { folder =>
      val file = MappedFile.open(Files.write(folder.resolve("mapped"), read("rank.mapped"))).get
      assert(file.version == Layout.version)
      assert((file.generation, file.blockCount, file.rankPid, file.released) == ((
        0x1122334455667788L, 2, 4242, 1L)))
      assert(file.rankFailure == "the test gave up")
      file.close()
    }
  }

  test("the golden files of two readers of one ring are read") {
    TemporaryFolder { folder =>
      val files = (0 to 1).map { reader =>
        val name = s"rank-readers-$reader.mapped"
        val file = MappedFile.open(Files.write(folder.resolve(name), read(name))).get
        file.check()
        file
      }
      assert(files.map(file => (file.reader, file.readers, file.rank, file.rankPid)) == Seq(
        (0, 2, 1, 4242), (1, 2, 2, 4243)))
      assert(files.forall(file => file.generation == 0x1122334455667788L && file.blockCount == 2))
      files.foreach(_.close())
    }
  }

  /** file, offset, bytes, reader, names (proto/golden/README.md). */
  private val mustFail =
    Files.readAllLines(golden.resolve("must-fail.tsv")).asScala.toSeq.tail.map(_.split("\t"))
      .filter(_(3) == "task")

  test("there are golden files that the task must refuse") {
    assert(mustFail.nonEmpty)
  }

  mustFail.foreach { row =>
    val Seq(name, offset, hex, _, names) = row.toSeq: @unchecked
    test(s"$name with $hex at $offset is refused, naming $names") {
      val patched = if (name == "rank.mapped") released(0) else read(name)
      val patch = hex.grouped(2).map(Integer.parseInt(_, 16).toByte).toArray
      System.arraycopy(patch, 0, patched, offset.toInt, patch.length)
      val mapped = if (name == "rank.mapped") patched else released(0)
      val requests = if (name == "rank.requests") patched else read("rank.requests")
      val message = intercept[SupplyException] {
        TemporaryFolder(folder => withPair(folder, mapped, requests)(consume))
      }.getMessage
      assert(message.contains(names))
    }
  }
}
