package supply.rows

import supply.core.Buffers
import supply.protocol.Column
import supply.source.{ElementWriter, ElementBytes}

/** Lists of any length. The values of rows that follow each other are copied together. */
private final class ListsCopy(column: Column, values: ColumnCopy) extends ColumnCopy(column) {
  private val bytesOf = new BytesOfLists(column.children, Seq(values))

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadLists(vector, rows, within) &&
      values.loadChild(vector, 0, memory) && {
        bytesOf.load(memory, rows)
        true
      }

  override def bytes(from: Int, count: Int): Long = bytesOf(from, count)

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
    to.putLists(entry, memory.lengths, from, count)
    ColumnCopy.runs(memory, from, count)(values.write(_, _, entry + 1, to))
  }
}

private final class MapsCopy(column: Column, keys: ColumnCopy, values: ColumnCopy)
    extends ColumnCopy(column) {
  private val bytesOf = new BytesOfLists(column.children, Seq(keys, values))

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadLists(vector, rows, within) &&
      keys.loadChild(vector, 0, memory) && values.loadChild(vector, 1, memory) && {
        bytesOf.load(memory, rows)
        true
      }

  override def bytes(from: Int, count: Int): Long = bytesOf(from, count)

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
    to.putLists(entry, memory.lengths, from, count)
    ColumnCopy.runs(memory, from, count) { (start, length) =>
      to.putParents(entry + 1, length)
      keys.write(start, length, entry + 2, to)
      values.write(start, length, entry + 2 + keys.entries, to)
    }
  }
}

/** The bytes of what lies within lists, added up over the rows. */
private final class BytesOfLists(columns: Seq[Column], copies: Seq[ColumnCopy]) {
  private val elementBytes = columns.map(ElementBytes.of).sum
  private val within = copies.toArray
  private val sums = new RowSums

  def load(lists: VectorMemory, rows: Int): Unit = sums.load(rows,
    row => {
      val length = lists.lengths(row)
      var bytes = elementBytes * length
      if (length > 0) {
        var i = 0
        while (i < within.length) {
          bytes += within(i).bytes(lists.starts(row), length)
          i += 1
        }
      }
      bytes
    })

  def apply(from: Int, count: Int): Long = sums(from, count)
}

/** The fields have as many rows as the structs, also where these are null. */
private final class StructsCopy(column: Column, fields: Array[ColumnCopy])
    extends ColumnCopy(column) {
  /** How many entries after the struct's own each field is. */
  private val places = fields.indices.map(column.entryOf).toArray

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadStructs(vector, rows, within) &&
      fields.indices.forall(i => fields(i).load(VectorMemory.child(vector, i), rows, nulls))

  override def bytes(from: Int, count: Int): Long = {
    var bytes = 0L
    var i = 0
    while (i < fields.length) {
      bytes += fields(i).bytes(from, count)
      i += 1
    }
    bytes
  }

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
    to.putParents(entry, count)
    var i = 0
    while (i < fields.length) {
      fields(i).write(from, count, entry + places(i), to)
      i += 1
    }
  }
}

/** Lists of `length` values each. Others are put into a [[RunColumn]], which refuses them. */
private final class FixedListsCopy(column: Column, values: ColumnCopy, length: Int)
    extends ColumnCopy(column) {
  private var longest = 0L

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadLists(vector, rows, within) && memory.haveLength(length, rows) &&
      values.loadChild(vector, 0, memory) && {
        longest = 0
        var row = 0
        while (row < rows) {
          if (memory.lengths(row) > 0)
            longest = math.max(longest, values.bytes(memory.starts(row), length))
          row += 1
        }
        true
      }

  /** At most. */
  override def bytes(from: Int, count: Int): Long = longest * count

  /** They have been written with the values: no value of the child stands for them. */
  override protected def markNulls(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = ()

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
    val end = from + count
    var row = from
    while (row < end) {
      val first = row
      while (row < end && !memory.isNull(row)) row += 1
      if (row > first) {
        to.putParents(entry, row - first)
        ColumnCopy.runs(memory, first, row - first)(values.write(_, _, entry + 1, to))
      }
      while (row < end && memory.isNull(row)) {
        to.putBlank(entry)
        row += 1
      }
    }
  }
}

/** The same for numbers, none of which is null: `listBytes` for each list. */
private final class NumberListsCopy(column: Column, length: Int, listBytes: Int)
    extends ColumnCopy(column) {
  private val width = listBytes / length
  private val numbers = new VectorMemory(nullable = true)

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadLists(vector, rows, within) && memory.haveLength(length, rows) && {
      memory.childRows == 0 ||
      numbers.loadValues(VectorMemory.child(vector, 0), memory.childRows,
        column.childFormat, width, memory.between) && haveNoNull(rows)
    }

  /** The child may have nulls that no row has. */
  private def haveNoNull(rows: Int): Boolean = numbers.nulls == null || {
    var found = false
    ColumnCopy.runs(memory, 0, rows) { (start, length) =>
      var at = start
      while (at < start + length && numbers.nulls(at) == 0) at += 1
      found |= at < start + length
    }
    !found
  }

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
    val space = to.reserveValues(entry, count)
    if (nulls == null) ColumnCopy.copyRuns(memory, from, count, numbers, width, space)
    else {
      var row = from
      while (row < from + count) {
        if (memory.isNull(row)) space.position(space.position() + listBytes)
        else Buffers.put(numbers.base, numbers.offset + width.toLong * memory.starts(row),
          listBytes, space)
        row += 1
      }
    }
  }
}
