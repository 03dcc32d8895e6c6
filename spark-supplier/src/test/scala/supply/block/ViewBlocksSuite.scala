package supply.block

import java.nio.{ByteBuffer, ByteOrder}

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, ElementTooLargeException}
import supply.protocol.{Column, Schema}
import supply.protocol.Layout.{View, Window}
import supply.source.{BatchCursor, ElementCursor, ElementWriter, ForeignFile, ForeignValues}

/** Blocks whose values stay in a foreign file. Nobody reads that file, so there need not be one. */
class ViewBlocksSuite extends AnyFunSuite with WrittenBlocks {
  import ViewBlocksSuite._

  /** Elements that are written many at once make the same blocks as one by one. */
  private def written(values: Seq[Value], blockElements: Int = Int.MaxValue): Seq[Seq[Any]] = {
    def made(cursor: ElementCursor) = blocks(cursor, schema, None, blockElements, first = 0)
    val oneByOne = made(new Values(values))
    Seq(1, 7, 256).foreach(ready => assert(made(new ManyValues(values, ready)) == oneByOne))
    oneByOne
  }

  private def buffer(block: Seq[Any], index: Int): ByteBuffer =
    ByteBuffer.wrap(block(index).asInstanceOf[(Int, Seq[Byte])]._2.toArray).order(
      ByteOrder.LITTLE_ENDIAN)

  /** (file, offset, bytes) of each window of a block. */
  private def windows(block: Seq[Any]): Seq[(Int, Long, Long)] = {
    val table = buffer(block, WindowsBuffer)
    (0 until table.capacity by Window.SIZE).map(at =>
      (table.getInt(at + Window.file), table.getLong(at + Window.offset),
        table.getLong(at + Window.windowBytes)))
  }

  /** (offset in the file, bytes) of each view of a block, as a rank finds the value. */
  private def found(block: Seq[Any]): Seq[(Long, Int)] = {
    val views = buffer(block, ViewsBuffer)
    val table = windows(block)
    (0 until views.capacity by View.SIZE).map { at =>
      val (_, start, bytes) = table(views.getInt(at + View.window))
      val offset = views.getInt(at + View.offset)
      val length = views.getInt(at + View.valueBytes)
      assert(views.getInt(at + View.start) == FirstFour)
      assert(offset >= 0 && offset + length.toLong <= bytes)
      (start + offset, length)
    }
  }

  test("a short value stands in its view, followed by zeros") {
    val block = written((0 to 12).map(bytes => Value(0, bytes))).head
    assert(windows(block).isEmpty)
    val views = buffer(block, ViewsBuffer)
    (0 to 12).foreach { bytes =>
      assert(views.getInt() == bytes)
      val value = new Array[Byte](12)
      views.get(value)
      assert(value.toSeq == short(bytes).padTo(12, 0: Byte).toSeq)
    }
  }

  test("values anywhere in a large file lie in windows of it, each in one") {
    val largest = 1 << 30
    val offsets = Seq(0L, 100L, GiB - 1, GiB, 3 * GiB - 7, 4 * GiB, 5, FileBytes - 13)
    val values = offsets.map(Value(_, 13)) :+ Value(2 * GiB - 1, largest)
    val made = written(values, blockElements = 100)
    assert(made.flatMap(found) == values.map(value => (value.offset, value.bytes)))
    assert(windows(made.head).map(_._2) == Seq(0, 1, 2, 4, 999).map(_ * GiB))
    made.flatMap(windows).foreach { case (file, offset, bytes) =>
      assert(file == 1 && bytes == math.min(Int.MaxValue.toLong, FileBytes - offset))
    }
  }

  test("a value that is larger than a window is refused") {
    val values = Seq(Value(0, (1 << 30) + 1))
    Seq(new Values(values), new ManyValues(values, 1)).foreach { cursor =>
      val message = intercept[ElementTooLargeException](
        blocks(cursor, schema, None, Int.MaxValue, first = 0)).getMessage
      assert(message.contains("1073741825 bytes") && message.contains("(--in-place)"))
    }
  }

  test("a block of several elements refers to less than 2 GiB") {
    val large = Seq.fill(5)(Value(0, 700 << 20))
    assert(written(large).map(_.head) == Seq(2, 2, 1))
    assert(written(Seq.fill(3)(Value(0, 1 << 30))).map(_.head) == Seq(1, 1, 1))
  }

  test("equal steps of more than 2 GiB are refused by that limit") {
    withPair() { (_, pair) =>
      val writer = new BlockWriter(pair, schema, None, 3, wholeBlocks = true)
      writer.startAt(0, 0, 0)
      val cursor = new Values(Seq.fill(3)(Value(0, 1 << 30)))
      val message = intercept[ConfigException] {
        while (cursor.next()) writer.append(cursor)
      }.getMessage
      assert(message.contains("a block refers to less than 2 GiB of values in place"))
      assert(message.contains("has 1 elements, and each must have 3 (--block-elements"))
      assert(message.endsWith("set fewer"))
    }
  }

  test("values of one window are written many at once, nearly to the end of a block") {
    val cursor = new ManyValues(Seq.tabulate(2000)(i => Value(i * 100L, 13)), 256)
    val made = blocks(cursor, schema, None, Int.MaxValue, first = 0)
    assert(made.flatMap(windows).size == made.size)
    assert(cursor.oneByOne < 250)
  }

  test("an element that does not fit adds no window") {
    // Each value is in another gibibyte, so it needs a window. Blocks are full of views and windows.
    val scattered = Seq.tabulate(1000)(i => Value(i * GiB, 13))
    val made = written(scattered, blockElements = 1000)
    assert(made.size > 5)
    made.foreach { block =>
      assert(windows(block).size == block.head)
      assert(block(2).asInstanceOf[Long] <= 4096)
    }
    assert(made.flatMap(found) == scattered.map(value => (value.offset, value.bytes)))
  }

}

private object ViewBlocksSuite {
  private val GiB = 1L << 30
  private val FileBytes = 1000 * GiB
  private val FirstFour = 0x01020304
  private val file = ForeignFile("/large", device = 1, inode = 2, FileBytes, modifiedNanos = 3)
  private val schema = Schema(Vector(Column("number", "i"), Column("data", "vz")))

  // Of a block: three numbers, then validity, offsets and data of each column.
  private val WindowsBuffer = 3 + 3 + 1
  private val ViewsBuffer = 3 + 3 + 2

  private final case class Value(offset: Long, bytes: Int)

  private def short(bytes: Int): Array[Byte] = Array.tabulate(bytes)(at => (bytes + at + 1).toByte)

  private sealed class Values(values: Seq[Value]) extends ElementCursor {
    protected var at: Int = -1
    private val foreign = new ForeignValues()
    override def next(): Boolean = { at += 1; at < values.size }
    override def write(to: ElementWriter): Unit = {
      to.putInt(0, at)
      refer(to, 1)
    }
    protected def refer(to: ElementWriter, count: Int): Unit = {
      (0 until count).foreach(i => set(i, values(at + i)))
      to.refer(1, file, foreign, Array.range(0, count), 0, count)
    }
    private def set(place: Int, value: Value): Unit =
      if (value.bytes > 12) foreign.set(place, value.bytes, value.offset, FirstFour, 0)
      else {
        val bytes = ByteBuffer.wrap(short(value.bytes).padTo(12, 0: Byte)).order(
          ByteOrder.LITTLE_ENDIAN)
        foreign.set(place, value.bytes, 0, bytes.getInt(), bytes.getLong())
      }
    override def describe: String = s"value $at"
    override def close(): Unit = ()
  }

  /** Writes up to `most` values at once. */
  private final class ManyValues(values: Seq[Value], most: Int) extends Values(values)
      with BatchCursor {
    var oneByOne = 0
    override def write(to: ElementWriter): Unit = {
      oneByOne += 1
      super.write(to)
    }
    override def ready: Int = math.min(most, values.size - at)
    override def bytes(count: Int): Long = count.toLong * Window.SIZE
    override def referencedBytes(count: Int): Long =
      values.slice(at, at + count).map(_.bytes.toLong).sum
    override def write(to: ElementWriter, count: Int): Unit = {
      to.reserveValues(0, count).asIntBuffer().put(Array.range(at, at + count))
      refer(to, count)
      at += count - 1
    }
  }
}
