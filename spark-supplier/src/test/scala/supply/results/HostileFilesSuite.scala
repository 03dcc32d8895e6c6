package supply.results

import java.io.RandomAccessFile
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.{Files, Path, Paths}

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import supply.core.SupplyException
import supply.protocol.Layout
import supply.protocol.Layout.{Constant, SchemaEntry}
import supply.testing.{BlockFileBytes, TemporaryFolder}

/**
 * A rank may write anything into its file. Spark gets a SupplyException or wrong values, and
 * touches no memory outside the file.
 */
class HostileFilesSuite extends AnyFunSuite {
  private val golden =
    Files.readAllBytes(Paths.get("../proto/golden/rank.predictions.result"))
  private val columns = 7
  private val secondBlock = Constant.RING_OFFSET + Constant.BLOCK_BYTES_UNIT
  private val table = Layout.blockHeaderBytes(columns)

  /** Where damage matters: begin and length. */
  private val places: IndexedSeq[(Int, Int)] = IndexedSeq(
    0 -> 256,
    Constant.SCHEMA_OFFSET -> columns * SchemaEntry.SIZE,
    Constant.RING_OFFSET -> table,
    secondBlock -> table,
    // Offsets and values.
    (Constant.RING_OFFSET + table) -> 1024,
    (secondBlock + table) -> (golden.length - secondBlock - table),
    0 -> golden.length)

  /** Bytes as a mistake or a lie would write them. */
  private def lie(random: Random): Array[Byte] = random.nextInt(6) match {
    case 0 => Array(random.nextInt(256).toByte)
    case 1 => number(random.nextInt(70000).toLong, 4)
    case 2 => number(random.nextInt().toLong, 4)
    case 3 => number(Seq(0L, -1L, Int.MaxValue.toLong, Int.MinValue.toLong)(random.nextInt(4)), 4)
    case 4 => number(random.nextLong() >> random.nextInt(64), 8)
    case _ => random.shuffle(formats).head.getBytes("US-ASCII") :+ 0.toByte
  }

  private val formats =
    Seq("b", "c", "C", "s", "S", "i", "I", "l", "L", "f", "g", "z", "u", "tdD", "tsu:", "tsu:UTC",
      "d:9,2", "d:38,0", "d:39,0", "d:5,9", "+w:3", "+w:1", "+w:0", "+w:536870911", "+w:9999999999")

  private def number(value: Long, bytes: Int): Array[Byte] =
    ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array.take(bytes)

  test("10,000 damaged files are refused or read, and do nothing else") {
    TemporaryFolder { folder =>
      val path = BlockFileBytes.write(folder.resolve("pair.r.result"), golden)
      val random = new Random(7)
      val outcomes = (0 until 10000).map { i =>
        damaged(path) { file =>
          (0 to random.nextInt(3)).foreach { _ =>
            val (begin, length) = places(random.nextInt(places.size))
            val bytes = lie(random)
            file.seek((begin + random.nextInt(length)).toLong)
            file.write(bytes)
          }
          if (random.nextInt(20) == 0) file.setLength(random.nextInt(golden.length).toLong)
          else file.setLength(golden.length.toLong)
        }(outcomeOf(path, i))
      }
      assert(outcomes.count(_ == "refused") > 2000)
      assert(outcomes.count(_ == "read") > 500)
      assert(ReadBlocks.rows(path).size == 5)
    }
  }

  private def outcomeOf(path: Path, round: Int): String =
    try {
      ReadBlocks.rows(path)
      "read"
    } catch {
      case _: SupplyException => "refused"
      case other: Throwable => fail(s"in round $round", other)
    }

  private def damaged[A](path: Path)(damage: RandomAccessFile => Unit)(body: => A): A = {
    val file = new RandomAccessFile(path.toFile, "rw")
    try {
      damage(file)
      val result = body
      file.seek(0)
      file.write(golden)
      file.setLength(golden.length.toLong)
      result
    } finally file.close()
  }

  test("offsets that change after the check of their block are checked again") {
    TemporaryFolder { folder =>
      val path = BlockFileBytes.write(folder.resolve("pair.r.result"), golden)
      val file = BlockFile.open(path, None)
      try {
        val labels = file.block(0, 0).vector(2)
        assert(labels.getUTF8String(0).toString == "seven")
        val writer = new RandomAccessFile(path.toFile, "rw")
        try {
          // The offsets of column 2: golden/must-fail.tsv damages them, too.
          writer.seek(66180)
          writer.write(number(Int.MaxValue.toLong, 4))
        } finally writer.close()
        Seq(() => labels.getUTF8String(0), () => labels.getBinary(0)).foreach { get =>
          val text = intercept[SupplyException](get()).getMessage
          assert(text.contains("'label'") && text.contains("never decrease"))
        }
      } finally file.close()
    }
  }
}
