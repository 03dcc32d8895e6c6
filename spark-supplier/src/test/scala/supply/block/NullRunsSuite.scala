package supply.block

import java.util.Random

import org.scalatest.funsuite.AnyFunSuite

import supply.protocol.{Column, Schema}
import supply.source.{BatchCursor, ElementWriter}

/** Runs of values with their nulls make the same blocks as the values one by one. */
class NullRunsSuite extends AnyFunSuite with WrittenBlocks {
  import NullRunsSuite._

  for ((name, isNull) <- Seq[(String, (Random, Int) => Boolean)](
      "no null" -> ((_, _) => false),
      "a first null late" -> ((_, i) => i == rows - 3),
      "some nulls" -> ((random, _) => random.nextInt(9) == 0),
      "runs of nulls" -> ((_, i) => i / 50 % 3 == 1),
      "nulls only" -> ((_, _) => true)); main <- Seq(None, Some(Longs), Some(Texts)))
    test(s"$name, main column ${main.map(schema.columns(_).name)}") {
      val random = new Random(7)
      val nulls = Array.tabulate(schema.columns.size)(_ =>
        Array.tabulate(rows)(i => if (isNull(random, i)) 1: Byte else 0: Byte))
      for (blockElements <- Seq(Int.MaxValue, 13); first <- Seq(0L, 55L)) {
        val expected = blocks(new Nullable(nulls, many = false), schema, main, blockElements, first)
        assert(elements(expected) == rows - first)
        assert(blocks(new Nullable(nulls, many = true), schema, main, blockElements, first) ==
          expected)
      }
    }

  test("the bits of any run, after any other") {
    val random = new Random(3)
    for (_ <- 0 until 300) {
      val runs = Seq.fill(4)(Array.fill(random.nextInt(70))(random.nextInt(2).toByte))
      val one = new StagedBits
      val many = new StagedBits
      for (run <- runs; ones = random.nextInt(40); flip = random.nextInt(2)) {
        run.foreach(bit => one.put((bit ^ flip) != 0))
        many.put(run, 0, run.length, flip)
        (0 until ones).foreach(_ => one.put(true))
        many.putOnes(ones)
      }
      assert(bytes(many) == bytes(one) && many.zeros == one.zeros)
    }
  }

  private def bytes(bits: StagedBits): Seq[Byte] = {
    val to = java.nio.ByteBuffer.allocate(bits.size)
    bits.appendTo(to, 0)
    to.array.toSeq
  }
}

private object NullRunsSuite {
  private val rows = 1000
  private val Longs = 1
  private val Texts = 4

  private val schema =
    Schema(Vector("i" -> "", "l" -> "", "b" -> "", "c" -> "", "u" -> "", "+w:3" -> "s")
        .map { case (format, child) => Column(s"of $format", format, nullable = true, child) })

  /** Element `i` has the number `i` in each column, or nulls. */
  private final class Nullable(nulls: Array[Array[Byte]], many: Boolean) extends BatchCursor {
    private var at = -1
    private val texts = Array.tabulate(rows)(i => ("t" * (i * 7 % 23)).getBytes)
    private def isNull(column: Int, i: Int) = nulls(column)(i) != 0

    override def next(): Boolean = { at += 1; at < rows }

    override def write(to: ElementWriter): Unit = write(to, 1)

    override def ready: Int = math.min(rows - at, if (many) 97 else 1)

    override def bytes(count: Int): Long = (at until at + count)
      .map(i => if (isNull(Texts, i)) 0L else texts(i).length.toLong).sum

    /** Values of nulls are not 0, and must not reach the block. */
    override def write(to: ElementWriter, count: Int): Unit = {
      val run = (at until at + count).toArray
      to.reserveValues(0, count).asIntBuffer().put(run)
      val longs = to.reserveValues(Longs, count)
      run.foreach(i => longs.putLong(i.toLong))
      to.putBits(2,
        run.map { i =>
          if (isNull(2, i)) i.toByte else if (i % 3 == 0) 1: Byte else 0: Byte
        }, 0, count)
      to.reserveValues(3, count).put(run.map(_.toByte))
      val lengths = run.map(i => if (isNull(Texts, i)) 0 else texts(i).length)
      val space = to.reserveBytes(Texts, lengths, 0, count)
      for (i <- run if !isNull(Texts, i)) space.put(texts(i))
      val lists = to.reserveValues(5, count)
      for (i <- run; _ <- 0 until 3) lists.putShort(i.toShort)
      for (column <- schema.columns.indices) to.markNulls(column, nulls(column), at, count)
      at += count - 1
    }

    override def describe: String = s"element $at"
    override def close(): Unit = ()
  }
}
