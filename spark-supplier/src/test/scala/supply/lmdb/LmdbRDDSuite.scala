package supply.lmdb

import java.nio.charset.StandardCharsets.ISO_8859_1

import org.scalatest.funsuite.AnyFunSuite

import supply.core.SourceException
import supply.plan.Plan
import supply.source.ShuffledCursor
import supply.testing.{Elements, LocalSpark, TemporaryFolder}

class LmdbRDDSuite extends AnyFunSuite with LocalSpark {

  private def expected(i: Int): Seq[Any] = {
    val d = TestLmdb.datum(i)
    Seq(f"$i%08d", d.getLabel.toString, d.getChannels, d.getHeight, d.getWidth, d.getEncoded,
      d.getData.toByteArray.toSeq)
  }

  private def comparable(tuple: Datum.Tuple): Seq[Any] = tuple.productIterator.map {
    case bytes: Array[Byte] => bytes.toSeq
    case other => other
  }.toSeq

  test("every entry is in exactly one partition, in key order, for any number of partitions") {
    TemporaryFolder { folder =>
      val db = TestLmdb.numbered(folder.resolve("db"), 20).toString
      Seq(1, 2, 3, 7, 19, 20, 21, 30).foreach { n =>
        val rdd = LmdbRDD.open(sc, db, n)
        assert(rdd.partitions.length == n)
        val sizes = rdd.mapPartitions(rows => Iterator.single(rows.size)).collect()
        assert(sizes.max - sizes.min <= 1, s"$n partitions")
        assert(TestLmdb.tuples(rdd).collect().map(comparable).toSeq == (0 until 20).map(expected),
          s"$n partitions")
      }
    }
  }

  test("ranks with equal numbers of partitions differ by at most one element") {
    TemporaryFolder { folder =>
      for (entries <- Seq(12, 13, 20); ranks <- 1 to 4;
        partitions <- Seq(ranks, 2 * ranks, 4 * ranks)) {
        val db = folder.resolve(s"db-$entries")
        val path = if (db.toFile.exists) db else TestLmdb.numbered(db, entries)
        val sizes = LmdbRDD.open(sc, path.toString, partitions).partitionEntries
        val plan = Plan(partitions, ranks, epochs = 1, seed = 0)
        val elements = (0 until ranks).map(plan.partitionsOf(_).map(sizes).sum)
        assert(elements.max - elements.min <= 1,
          s"$entries entries, $partitions partitions: $elements")
      }
    }
  }

  test("what a source knows of its data is known of a part of the columns, too") {
    TemporaryFolder { folder =>
      val lmdb = LmdbRDD.open(sc, TestLmdb.numbered(folder.resolve("db"), 3).toString, 1)
      val images = new LmdbSource(lmdb, inPlace = true, IndexedSeq(Datum.Data, Datum.Label))
      assert(images.mainColumn.contains(0) && images.bytes.contains(lmdb.bytes))
      val labels = new LmdbSource(lmdb, inPlace = true, IndexedSeq(Datum.Label))
      assert(labels.identity.contains(lmdb.identity) && labels.partitionElements.contains(Seq(3)))
      assert(labels.bytes.isEmpty && labels.mainColumn.isEmpty)
    }
  }

  test("keys of any bytes survive, and sort as bytes") {
    TemporaryFolder { folder =>
      val keys =
        Seq("a/b", "a\\b", "\u0000", "\u00ff\u00fe", "tab\there", "\u007f", "00000001_n01/x.JPEG")
      val db = TestLmdb.write(folder.resolve("db"),
        keys.map(k => k.getBytes(ISO_8859_1) -> TestLmdb.datum(1).toByteArray))
      assert(TestLmdb.tuples(LmdbRDD.open(sc, db.toString, 3)).map(
        _._1).collect().toSeq == keys.sorted)
    }
  }

  test("a value that is not a Datum is named by its key") {
    TemporaryFolder { folder =>
      val db = TestLmdb.write(folder.resolve("db"),
        Seq(TestLmdb.key(0) -> TestLmdb.datum(0).toByteArray,
          "k\u0001".getBytes -> "no datum".getBytes))
      val cursor =
        new LmdbCursor(db.resolve("data.mdb").toString, LmdbPartition(0, TestLmdb.key(0), 2))
      try {
        assert(cursor.next())
        val message = intercept[SourceException](cursor.next()).getMessage
        assert(message.contains("'k\\x01'") && message.contains(
          "is not a Datum (8 bytes): if this entry is none, leave it out " +
            "(--skip-keys, option skipKeys: docs/LMDB.md). As a Datum, "))
      } finally cursor.close()
    }
  }

  test("keys whose values are no Datums are named, and can be skipped") {
    TemporaryFolder { folder =>
      val datums = (0 until 100).map(i => TestLmdb.key(i) -> TestLmdb.datum(i).toByteArray)
      Seq("num-samples", "!first", "00000050x").foreach { key =>
        val entries = datums :+ (key.getBytes -> "50000".getBytes)
        val db = TestLmdb.write(folder.resolve(key), entries).toString
        Seq(1, 3, 7).foreach { partitions =>
          val message = intercept[Exception](LmdbRDD.open(sc, db, partitions).count()).getMessage
          assert(message.contains(s"key '$key'") && message.contains("--skip-keys"))
          val rdd = LmdbRDD.open(sc, db, partitions, Seq(key, "not-there", s" $key", ""))
          assert(
            TestLmdb.tuples(rdd).map(_._1).collect().toSeq == (0 until 100).map(i => f"$i%08d"))
          assert(rdd.partitionEntries.sum == 100)
        }
      }
      assert(intercept[SourceException](LmdbRDD.open(sc,
            TestLmdb.write(folder.resolve("none"), Seq("a".getBytes -> "b".getBytes)).toString, 1,
            Seq("a"))).getMessage.contains("no entries but"))
    }
  }

  test("the first and the last entry are read when the database is opened") {
    TemporaryFolder { folder =>
      Seq("!first", "zlast").foreach { key =>
        val db = TestLmdb.write(folder.resolve(key),
          Seq(TestLmdb.key(0) -> TestLmdb.datum(0).toByteArray, key.getBytes -> "50000".getBytes))
        assert(intercept[SourceException](LmdbRDD.open(sc, db.toString, 2)).getMessage.contains(
            s"'$key'"))
      }
    }
  }

  test("a walk that maps the file again on its way passes the same entries") {
    TemporaryFolder { folder =>
      val file = TestLmdb.numbered(folder.resolve("db"), 200).resolve("data.mdb").toString
      def entries(walk: LmdbWalk): Seq[(Seq[Byte], Int)] =
        try Iterator.continually(walk.next()).takeWhile(identity).map(_ =>
            walk.keyBytes.toSeq -> walk.value.capacity()).toVector
        finally walk.close()
      val all = entries(new LmdbWalk(file))
      assert(all.size == 200)
      Seq(1L, 1000L, 1L << 40).foreach(window =>
        assert(entries(new LmdbWalk(file, window)) == all, window))
    }
  }

  test("shuffled elements are the same from a mapped file and from a window of it") {
    TemporaryFolder { folder =>
      val file = TestLmdb.numbered(folder.resolve("db"), 200).resolve("data.mdb").toString
      val partition = LmdbPartition(0, TestLmdb.key(0), 200)
      val inOrder = Elements.all(new LmdbCursor(file, partition))
      Seq(1, 50, 300).foreach { buffer =>
        def shuffled(window: Long) =
          Elements.all(new ShuffledCursor(new LmdbCursor(file, partition, window), buffer,
              seed = 3))
        val mapped = shuffled(Long.MaxValue)
        assert((mapped == inOrder) == (buffer == 1))
        Seq(1L, 1000L).foreach(window =>
          assert(shuffled(window) == mapped, s"a buffer of $buffer, a window of $window bytes"))
      }
    }
  }

  test("the cursors of a process share an environment, which the last one closes") {
    TemporaryFolder { folder =>
      val file = TestLmdb.numbered(folder.resolve("db"), 5).resolve("data.mdb").toString
      val walks = Seq.fill(3)(new LmdbWalk(file))
      assert(walks.map { walk => walk.next(); walk.keyBytes.toSeq }.distinct == Seq(
        TestLmdb.key(0).toSeq))
      walks.foreach(_.close())
      val again = new LmdbWalk(file)
      assert(again.next())
      again.close()
    }
  }
}
