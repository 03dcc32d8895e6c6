package supply.block

import java.nio.{ByteBuffer, ByteOrder}

import supply.core.{ConfigException, ElementTooLargeException}
import supply.pair.Pair
import supply.protocol.{Layout, Schema}
import supply.protocol.Layout.Constant
import supply.source.{BatchCursor, ElementCursor, ElementWriter, ForeignFile, ForeignValues}

/**
 * Makes blocks of `blockElements` elements in the slots of a pair, or as many as fit; with
 * `wholeBlocks`, fewer are an error. If all values have a fixed size, each column has its place in the
 * slot from the beginning. Otherwise only the main column is written into the slot at once; the others
 * are staged, and appended when the block is closed (proto/PROTOCOL.md, "Block").
 */
private[supply] final class BlockWriter(pair: Pair, schema: Schema, mainColumn: Option[Int],
    blockElements: Int,
    wholeBlocks: Boolean = false)
    extends ColumnsWriter {
  import BlockWriter.ReferencedMax

  private val blockBytes = pair.blockBytes
  private val headerBytes = Layout.blockHeaderBytes(schema.entries.size)
  private val sizes = FixedSizes.of(schema)

  /** Elements of a block: at most. */
  private val most = math.min(blockElements,
    sizes.fold(Int.MaxValue)(_.elementsIn(blockBytes - headerBytes)))

  /** The entries that are written into the slot at once. */
  private val inSlot: Map[Int, BytesInSlot] =
    sizes.fold[Seq[Int]](mainColumn.toSeq)(_.places).map(_ -> new BytesInSlot).toMap

  /** The same in their order, each with the bytes that it has there, if that is known. */
  private val places = inSlot.toArray.sortBy(_._1).map { case (entry, values) =>
    values -> sizes.fold(0)(_.bytes(entry, most))
  }
  private val made = BlockColumn.of(schema.columns, inSlot.getOrElse(_, new StagedBytes))
  override protected val columns: Array[BlockColumn] = made.entries
  if (headerBytes >= blockBytes)
    throw new ConfigException(
      s"${pair.name}: ${schema.entries.size} columns need blocks of more than $headerBytes bytes: " +
        largerBlock(2L * headerBytes + schema.entries.size * 2L * Constant.BUFFER_ALIGNMENT))

  /** Bytes of an element besides those of texts and lists. */
  private val elementBytes = made.roots.iterator.map(_.elementBytes).sum
  private val paddingBytes = columns.iterator.map(_.paddingBytes).sum

  private var claim: pair.Claim = _

  /** At least [[usedBytes]], cheaper: the exact sum is needed only near the end of a block. */
  private var usedAtMost = 0L

  /** Bytes of values in place to which the block refers. */
  private var referenced = 0L

  /** Whether the element that did not fit would have made them too many. */
  private var refersToTooMuch = false
  private var epoch = 0
  private var partition = 0
  private var firstElement = 0L
  private var elements = 0

  if (schema.isKnown) pair.writeOrCheckSchema(schema)

  /** Sets the position of the next elements in the source; the current block must be empty. */
  def startAt(epoch: Int, partition: Int, element: Long): Unit = {
    require(elements == 0, "a block holds elements of one partition")
    this.epoch = epoch
    this.partition = partition
    firstElement = element
  }

  /** Adds the cursor's element and, of a batch, more, at most `limit`; returns their number. */
  def append(cursor: ElementCursor, limit: Long = Long.MaxValue): Int = {
    val added = cursor match {
      case batch: BatchCursor => appendMany(batch, limit)
      case _ => 0
    }
    if (added == 0) appendOne(cursor)
    if (elements == blockElements || elements == most && !wholeBlocks) publish()
    math.max(added, 1)
  }

  private def appendOne(cursor: ElementCursor): Unit = if (!tryAppend(cursor)) {
    if (elements > 0) {
      if (wholeBlocks) refuseFullBlock()
      publish()
      if (!tryAppend(cursor)) refuse(cursor)
    } else refuse(cursor)
  }

  /** Uses the bound, not the exact size: near the end of a block elements are added one by one. */
  private def appendMany(batch: BatchCursor, limit: Long): Int = {
    if (claim == null) open()
    var count = math.min(math.min(batch.ready, most - elements).toLong, limit).toInt
    def usedAfter =
      if (sizes.isDefined) 0 else usedAtMost + batch.bytes(count) + count.toLong * elementBytes
    // A cursor counts a window for each value, and most values share one.
    if (count > 0 && usedAfter > blockBytes)
      usedAtMost = math.min(usedAtMost, usedBytes + paddingBytes)
    while (count > 0 &&
      (usedAfter > blockBytes || referenced + batch.referencedBytes(count) > ReferencedMax))
      count /= 2
    if (count > 0) {
      val used = usedAfter
      elements += count
      batch.write(this, count)
      usedAtMost = used
    }
    count
  }

  /** Whether all added elements are published. */
  def isEmpty: Boolean = elements == 0

  /** Publishes a block that is not empty: at the end of a partition. */
  def flush(): Unit = if (elements > 0) publish()

  private def tryAppend(cursor: ElementCursor): Boolean = elements < most && {
    if (claim == null) open()
    val referencedBefore = referenced
    def forgetLast(): Unit = {
      elements -= 1
      made.roots.foreach(_.truncate(elements))
      refersToTooMuch = referenced > ReferencedMax
      referenced = referencedBefore
    }
    try {
      cursor.write(this)
      cursor match {
        case batch: BatchCursor if batch.ready > 0 => used(batch.bytes(1))
        case _ => ()
      }
      elements += 1
      if (fits) true else { forgetLast(); false }
    } catch {
      case BlockFull =>
        elements += 1
        forgetLast()
        false
    }
  }

  private def open(): Unit = {
    claim = pair.claim()
    var at = headerBytes
    places.foreach { case (values, bytes) =>
      values.writeInto(claim.slot, at)
      at += bytes
    }
    made.roots.foreach(_.truncate(0))
    referenced = 0
    usedAtMost = headerBytes.toLong + paddingBytes
  }

  private def fits: Boolean = {
    usedAtMost += elementBytes
    sizes.isDefined ||
    referenced <= ReferencedMax && (usedAtMost <= blockBytes || usedBytes <= blockBytes)
  }

  private def usedBytes: Long = {
    var bytes = headerBytes.toLong
    var i = 0
    while (i < columns.length) {
      bytes += columns(i).alignedBytes
      i += 1
    }
    bytes
  }

  private def publish(): Unit = {
    claim.slot.clear()
    var at = headerBytes
    places.foreach { case (values, _) => at = values.moveTo(at) }
    var i = 0
    while (i < columns.length) {
      val described = Layout.BlockHeader.SIZE + i * Layout.BlockColumn.SIZE
      at = columns(i).append(claim.slot, described, at)
      i += 1
    }
    claim.commit(Constant.NOTIFICATION_BLOCK, epoch, partition, firstElement, elements,
      columns.length, at, referenced.toInt)
    firstElement += elements
    elements = 0
    claim = null
  }

  /** What to set for blocks of that size: a power of two, so that the next element fits, too. */
  private def largerBlock(bytes: Long): String = {
    val block = java.lang.Long.highestOneBit(math.max(bytes, 2) - 1) << 1
    if (block > Constant.BLOCK_BYTES_MAX)
      s"no block has more than ${Constant.BLOCK_BYTES_MAX} bytes: make it smaller, or split it into rows"
    else
      s"set a larger block= (and ring=), at least block=$block ring=${2 * block} (${pair.paths.configLine})"
  }

  private def refuse(cursor: ElementCursor): Nothing = {
    val (bytes, column, most) = new ElementCount(schema).bytesOf(cursor)
    throw new ElementTooLargeException(
      s"${pair.name}: ${cursor.describe} (partition $partition) does not fit into a block of $blockBytes bytes, and needs one of " +
        s"$bytes, of which column '${Schema.shown(column)}' has $most: ${largerBlock(bytes)}")
  }

  private def refuseFullBlock(): Nothing = {
    val (why, mend) =
      if (refersToTooMuch)
        "refers to less than 2 GiB of values in place (--in-place), and has" -> "set fewer"
      else
        s"of $blockBytes bytes is full with" -> s"${largerBlock(2L * blockBytes)}, or fewer elements"
    throw new ConfigException(
      s"${pair.name}: a block $why $elements elements, and each must have " +
        s"$blockElements (--block-elements with --uneven): $mend")
  }

  override protected def used(bytes: Long): Unit = usedAtMost += bytes

  override def refer(column: Int, file: ForeignFile, values: ForeignValues, places: Array[Int],
      from: Int, count: Int): Unit = {
    val number = pair.numberOf(file)
    var i = from
    while (i < from + count) {
      val length = values.lengths(places(i))
      if (length > StagedWindows.Stride) throw new ElementTooLargeException(
        s"${pair.name}: an element has $length bytes, and in place (--in-place) it may have " +
          s"${StagedWindows.Stride}: supply it without that option")
      if (length > Constant.VIEW_INLINE_MAX) referenced += length
      used(columns(column).refer(number, file, values, places(i)).toLong)
      i += 1
    }
  }
}

/** Puts values into the columns of a block. */
private[supply] abstract class ColumnsWriter extends ElementWriter {
  protected def columns: Array[BlockColumn]

  /** Bytes that an element has besides those of [[supply.source.ElementBytes]]. Not called for many elements. */
  protected def used(bytes: Long): Unit

  override def putInt(column: Int, value: Int): Unit = columns(column).putInt(value)

  override def putBoolean(column: Int, value: Boolean): Unit = columns(column).putBoolean(value)

  override def reserve(column: Int, bytes: Int): ByteBuffer = {
    if (columns(column).isVariable) used(bytes.toLong)
    columns(column).reserve(bytes)
  }

  override def reserveValues(column: Int, count: Int): ByteBuffer =
    columns(column).reserveValues(count)

  override def reserveBytes(column: Int, lengths: Array[Int], from: Int, count: Int): ByteBuffer =
    columns(column).reserveBytes(lengths, from, count)

  override def putBits(column: Int, values: Array[Byte], from: Int, count: Int): Unit =
    columns(column).putBits(values, from, count)

  override def putLists(column: Int, lengths: Array[Int], from: Int, count: Int): Unit =
    columns(column).putLists(lengths, from, count)

  override def putParents(column: Int, count: Int): Unit = columns(column).putParents(count)

  override def putBlank(column: Int): Unit = columns(column).putBlank()

  override def markNulls(column: Int, nulls: Array[Byte], from: Int, count: Int): Unit =
    columns(column).markNulls(nulls, from, count)

  override def clear(column: Int, nulls: Array[Byte], from: Int, count: Int): Unit =
    columns(column).clear(nulls, from, count)
}

private[block] object BlockWriter {
  /** Bytes of values in place to which a block refers. The sum is 32 bits. */
  final val ReferencedMax = Int.MaxValue
}

/** Counts what an element takes. */
private[block] final class ElementCount(schema: Schema) extends ColumnsWriter {
  private val made = BlockColumn.of(schema.columns, _ => new CountedBytes)
  override protected val columns: Array[BlockColumn] = made.entries

  /** Bytes of a block with that element alone, the name of the column that has most of them, and how many. */
  def bytesOf(cursor: ElementCursor): (Long, String, Long) = {
    cursor.write(this)
    val (column, most) = schema.columns.map(_.name).zip(made.roots.map(_.wholeBytes)).maxBy(_._2)
    (Layout.blockHeaderBytes(columns.size) + columns.iterator.map(_.alignedBytes.toLong).sum,
      column,
      most)
  }

  override protected def used(bytes: Long): Unit = ()

  override def refer(column: Int, file: ForeignFile, values: ForeignValues, places: Array[Int],
      from: Int, count: Int): Unit =
    for (i <- from until from + count) columns(column).refer(1, file, values, places(i))
}

/** Keeps the number of bytes, and not the bytes. */
private[block] final class CountedBytes extends BytesBuffer {
  private var scratch = ByteBuffer.allocate(0)

  override def reserve(n: Int): ByteBuffer = {
    if (n > scratch.capacity()) scratch = ByteBuffer.allocate(n).order(ByteOrder.LITTLE_ENDIAN)
    count += n
    scratch.clear().limit(n)
  }

  override def putInt(value: Int): Unit = count += Integer.BYTES

  override def clear(nulls: Array[Byte], from: Int, n: Int, width: Int): Unit = ()

  override def appendTo(slot: ByteBuffer, at: Int): Int =
    throw new UnsupportedOperationException("the bytes are only counted")
}
