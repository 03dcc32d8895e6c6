package supply.block

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.nio.file.{Files, Path, Paths}
import java.nio.file.StandardCopyOption.REPLACE_EXISTING
import java.nio.file.attribute.{PosixFileAttributes, PosixFilePermissions}

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumCursor
import supply.core.{ConfigException, ContractException, PairException}
import supply.lmdb.Datum
import supply.pair.{Pair, PairFile, PairPaths, PairWithRank}
import supply.protocol.Layout.{Constant, MappedFileHeader => At, SchemaEntry}
import supply.testing.{TemporaryFolder, TestRank}

/** Resident files, step by step, with a real rank: proto/PROTOCOL.md, "Resident files". */
class ResidentFileSuite extends AnyFunSuite with PairWithRank {
  private def withFolder(body: (TestRank, ResidentFileNames) => Unit): Unit = withRank { rank =>
    assert(rank.open(ringBytes = 3 * 4096L, rank = 0, timeout = timeout) == "OK")
    val folder = Paths.get(rank.paths.mappedFile).resolveSibling("resident")
    body(rank, ResidentFileNames(folder, rank.paths))
  }

  private def space(names: ResidentFileNames, quota: Option[Long] = None) =
    new ResidentSpace("pair 0", names.folder, quota, None)

  /** One attempt of this run, with its resident file. */
  private def attempt(rank: TestRank, names: ResidentFileNames, number: Int = 0)(
      body: (Pair, PairResidentFile) => Unit): Unit = attached(rank, number) { pair =>
    pair.bindPlan(3)
    pair.writeOrCheckSchema(Datum.schema)
    body(pair, new PairResidentFile(pair, Datum.schema, names, run, space(names)))
  }

  /** Publishes a block of each of these elements of partition 0, which the rank releases. */
  private def write(rank: TestRank, pair: Pair, first: Int, last: Int): Seq[String] =
    (first to last).map { i =>
      val writer = new BlockWriter(pair, Datum.schema, Some(Datum.Data), 1)
      writer.startAt(0, 0, i.toLong)
      val cursor = new DatumCursor(Iterator((s"$i", s"$i", 1, 1, 1, false, Array(i.toByte))))
      while (cursor.next()) writer.append(cursor)
      take(rank)
    }

  /** Takes a block, whose first Datum has this label, and releases it. */
  private def take(rank: TestRank, label: Option[Long] = None): String = {
    val seen = rank("next")
    label.foreach(number => assert(rank("datum 0").startsWith(s"OK $number ")))
    assert(rank(s"release ${seen.split(' ')(1)}") == "OK")
    seen
  }

  /** Publishes partition 0 from the file, and the epoch's end. */
  private def publish(
      rank: TestRank, pair: Pair, file: ResidentFile, epoch: Int, from: Long = 0): Seq[String] = {
    val seen = file.from(0, from).get.map { block =>
      pair.publish(file.foreign, block, epoch)
      take(rank, label = Some(block.firstElement))
    }
    pair.publishEndOfEpoch(epoch)
    assert(rank("next") == s"END_OF_EPOCH $epoch")
    seen
  }

  private def end(rank: TestRank, pair: Pair, epoch: PairResidentFile): Unit = {
    pair.publishEndOfData()
    assert(rank("next") == "END_OF_DATA")
    pair.awaitAllReleased()
    epoch.remove()
  }

  private def endFirst(rank: TestRank, pair: Pair): Unit = {
    pair.publishEndOfEpoch(0)
    assert(rank("next") == "END_OF_EPOCH 0")
  }

  test("later epochs come from the file, which has its own folder and is removed at the end") {
    withFolder { (rank, names) =>
      attempt(rank, names) { (pair, epoch) =>
        epoch.begin()
        assert(Files.exists(names.unsealed) && epoch.file.isEmpty)
        write(rank, pair, 0, 4)
        endFirst(rank, pair)
        assert(Files.exists(names.ofRun) && Files.notExists(names.unsealed))
        assert(modeOf(names.ofRun) == "rw-------" && modeOf(names.folder) == "rwx------")
        assert(publish(rank, pair, epoch.file.get, 1) == (0 to 4).map(i =>
          s"OK ${6 + i} 1 0 $i 1"))
        assert(pair.publishedElements == 10)
        end(rank, pair, epoch)
        assert(Files.notExists(names.ofRun))
      }
    }
  }

  private def modeOf(path: Path) =
    PosixFilePermissions.toString(Files.getPosixFilePermissions(path))

  test("the next attempt continues an unsealed file, and then uses the sealed one") {
    withFolder { (rank, names) =>
      attempt(rank, names) { (pair, epoch) =>
        epoch.begin()
        write(rank, pair, 0, 1)
      }
      assert(Files.exists(names.unsealed))
      attempt(rank, names, 1) { (pair, epoch) =>
        epoch.resume()
        write(rank, pair, 2, 3)
        endFirst(rank, pair)
        pair.publish(epoch.file.get.foreign, epoch.file.get.from(0, 0).get.head, 1)
        assert(take(rank) == "OK 5 1 0 0 1")
      }
      attempt(rank, names, 2) { (pair, epoch) =>
        assert(pair.position.inside.contains(0 -> 1L) && pair.publishedElements == 5)
        assert(publish(rank, pair, epoch.file.get, 1, from = 1) == (1 to 3).map(i =>
          s"OK ${5 + i} 1 0 $i 1"))
        end(rank, pair, epoch)
      }
      assert(Files.list(names.folder).count() == 0)
    }
  }

  test("a block that is in the file and was not published is written again") {
    withFolder { (rank, names) =>
      attempt(rank, names) { (pair, epoch) =>
        epoch.begin()
        write(rank, pair, 0, 1)
      }
      // As if the attempt had died between F2 and P3 of another block.
      val file = new java.io.RandomAccessFile(names.unsealed.toFile, "rw")
      try {
        file.seek(At.published.toLong)
        file.write(3)
      } finally file.close()
      attempt(rank, names, 1) { (pair, epoch) =>
        epoch.resume()
        write(rank, pair, 2, 2)
        endFirst(rank, pair)
        assert(publish(rank, pair, epoch.file.get, 1).size == 3)
      }
    }
  }

  test("a run removes what an earlier run of the pair has left") {
    withFolder { (rank, names) =>
      attached(rank) { pair =>
        new PairResidentFile(pair, Datum.schema, names, run + 1, space(names)).begin()
      }
      Files.createLink(names.ofRun, names.unsealed)
      attempt(rank, names, 1) { (_, epoch) =>
        assert(epoch.file.isEmpty)
        assert(Files.notExists(names.unsealed) && Files.notExists(names.ofRun))
      }
    }
  }

  test("what another run has left is removed by a task of the pair alone") {
    withFolder { (rank, names) =>
      attached(rank) { pair =>
        new PairResidentFile(pair, Datum.schema, names, run + 1, space(names)).begin()
      }
      // No process id says whether a run lives: another process may have it now.
      val header = ByteBuffer.wrap(Files.readAllBytes(names.unsealed)).order(LITTLE_ENDIAN)
      Files.write(names.unsealed, header.putInt(At.taskPid, rank.pid.toInt).array)
      names.remove(run)
      assert(Files.exists(names.unsealed))
      attempt(rank, names, 1)((_, _) => ())
      assert(Files.notExists(names.unsealed))
    }
  }

  test("a run removes its own files without a task, also one without a header") {
    withFolder { (rank, names) =>
      attempt(rank, names)((_, epoch) => epoch.begin())
      Files.createFile(names.ofRun)
      names.remove(run)
      assert(Files.notExists(names.unsealed) && Files.notExists(names.ofRun))
    }
  }

  test("an attempt that is late does not name the file of the next one") {
    withFolder { (rank, names) =>
      attempt(rank, names) { (pair, epoch) =>
        epoch.begin()
        write(rank, pair, 0, 1)
        val other = Files.copy(names.unsealed, names.folder.resolve("other"))
        Files.move(other, names.unsealed, REPLACE_EXISTING)
        val late = intercept[PairException](pair.publishEndOfEpoch(0)).getMessage
        assert(late.contains(s"${names.unsealed} is now the file of another attempt"))
        assert(Files.exists(names.unsealed) && Files.notExists(names.ofRun))
      }
    }
  }

  test("mapped files of the same name in other folders have other resident files") {
    val folder = Paths.get("/resident")
    def names(mapped: String) = ResidentFileNames(folder, PairPaths(mapped, "", "", ""))
    assert(names("foobar").ofRun == folder.resolve("foobar.85944171f73967e8.resident"))
    assert(names("/a/pair-0").ofRun != names("/b/pair-0").ofRun)
    assert(s"${names("/a/pair-0").ofRun}.unsealed" == names("/a/pair-0").unsealed.toString)
  }

  test("a kept file of other data, or a damaged one, is named") {
    withFolder { (rank, names) =>
      val kept = names.copy(kept = Some("1-2.0.kept"))
      def refused(): String = intercept[ContractException] {
        attempt(rank, kept, 1)((_, epoch) => epoch.file)
      }.getMessage
      attempt(rank, kept) { (pair, epoch) =>
        epoch.begin()
        write(rank, pair, 0, 1)
        endFirst(rank, pair)
      }
      val bytes = Files.readAllBytes(kept.whenSealed)
      for ((at, names) <- Seq(At.plan -> "other data", At.rank -> "other data",
          At.`sealed` -> "other data", At.magic -> "magic", At.fileUse -> "file_use",
          At.byteOrder -> "byte_order", At.blockCount -> "block_count",
          At.ringOffset -> "ring_offset", At.schemaColumns -> "other data",
          Constant.SCHEMA_OFFSET + SchemaEntry.format - 1 -> "schema_entry.name of column 0",
          Constant.RING_OFFSET -> "block 0")) {
        Files.write(kept.whenSealed, bytes.updated(at, (bytes(at) + 1).toByte))
        val message = refused()
        assert(message.contains(names) && message.contains("1-2.0.kept"))
      }
      Files.write(kept.whenSealed, bytes.patch(At.generation, new Array[Byte](8), 8))
      assert(refused().contains("its generation is 0"))
      for (changed <- Seq(bytes.dropRight(1), bytes :+ 0.toByte)) {
        Files.write(kept.whenSealed, changed)
        assert(refused().contains("file_bytes"))
      }
      val longer = ByteBuffer.wrap(bytes :+ 0.toByte).order(LITTLE_ENDIAN)
      Files.write(kept.whenSealed, longer.putLong(At.fileBytes, bytes.length + 1L).array)
      assert(refused().contains("its last block ends at"))
    }
  }

  test("a full disk is an error that names the folder and what to do") {
    withFolder { (_, names) =>
      val full = intercept[ConfigException](
        space(names).writing(throw new IOException("No space left on device")))
      assert(full.getMessage.contains(s"the resident folder ${names.folder} is full"))
    }
  }

  test("a disk or a quota that may be too small is a warning in front") {
    TemporaryFolder { folder =>
      def shortage(quota: Option[Long], expected: Long) =
        new ResidentSpace("pair 0", folder, quota, Some(expected)).shortage
      assert(shortage(None, Long.MaxValue).exists(_.contains("bytes free, and this rank needs")))
      assert(shortage(Some(9), 10).exists(_.contains("may write 9 (its part of --resident-quota)")))
      assert(shortage(Some(10), 10).isEmpty && shortage(None, 10).isEmpty)
    }
  }

  test("members of the pair's group may read the file, and change nothing") {
    TemporaryFolder { parent =>
      val group = Files.readAttributes(parent, classOf[PosixFileAttributes]).group
      val folder = parent.resolve("resident")
      ResidentFolder.make(folder, Some(group.getName))
      PairFile.create(folder.resolve("file"), Some(group.getName)).close()
      assert(modeOf(folder) == "rwxr-x---" && modeOf(folder.resolve("file")) == "rw-r-----")
      val parts = Seq("one", "one/two", "one/two/three").map(parent.resolve)
      Files.createDirectory(parts(0),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")))
      ResidentFolder.make(parts(2), Some(group.getName))
      assert(parts.map(modeOf) == Seq("rwx------", "rwxr-x---", "rwxr-x---"))
      ResidentFolder.make(parts(0), Some(group.getName))
      assert(modeOf(parts(0)) == "rwxr-x---")
      assert(Files.readAttributes(folder.resolve("file"), classOf[PosixFileAttributes]).group ==
        group)
    }
  }

  test("a folder that others can write is refused") {
    withFolder { (rank, names) =>
      Files.createDirectory(names.folder)
      Files.setPosixFilePermissions(names.folder, PosixFilePermissions.fromString("rwxrwxrwx"))
      val refused = intercept[ConfigException](attempt(rank, names)((_, epoch) => epoch.begin()))
      assert(refused.getMessage.contains("can be written by other users"))
    }
  }

  test("a folder of another user is refused, and what is in it stays") {
    assume(Files.getAttribute(Paths.get("/proc/self"), "unix:uid") == 0,
      "needs root, to give a folder to another user")
    withFolder { (rank, names) =>
      Files.createDirectory(names.folder)
      Files.createFile(names.unsealed)
      Files.setAttribute(names.folder, "unix:uid", 61001)
      val refused = intercept[ConfigException](attempt(rank, names)((_, _) => ())).getMessage
      assert(refused.contains(s"the folder ${names.folder} belongs to 61001"))
      assert(Files.exists(names.unsealed))
    }
  }
}
