package supply.protocol

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable.ArrayBuffer

import supply.core.{ConfigException, ContractException}
import supply.protocol.Layout.{Constant, MappedFileHeader => Header, SchemaEntry => At}

/** A column of a block, or a child of one. The formats are those of the Arrow C Data Interface. */
private[supply] final case class Column(name: String, format: String, nullable: Boolean = false,
    childFormat: String = "", children: IndexedSeq[Column] = IndexedSeq.empty) {
  /** It and all that is within it, each before its own children: as the contract counts entries. */
  def entries: IndexedSeq[Column] = this +: children.flatMap(_.entries)

  /** How many columns lie within each other in it. */
  private[protocol] def depth: Int = (0 +: children.map(_.depth + 1)).max

  /** Once, because it is asked for in each block. */
  @transient private[protocol] lazy val layout: Format = Format.parse(this)

  /** How many entries stand before child `number`, from this one on. */
  def entryOf(number: Int): Int = 1 + children.take(number).map(_.entries.size).sum
}

/** The columns of every block of a pair; empty while they are unknown. */
private[supply] final case class Schema(columns: IndexedSeq[Column]) {
  import Schema.{ShortNameMax, shown}

  /** The columns and all that is within them, in the order of a block's table. */
  val entries: IndexedSeq[Column] = columns.flatMap(_.entries)

  if (entries.size > Constant.SCHEMA_ENTRIES_MAX)
    throw new ConfigException(
      s"a block has at most ${Constant.SCHEMA_ENTRIES_MAX} columns, not ${entries.size}: select fewer, or put " +
        "numbers of one type into an array")
  entries.find(_.name.contains('\u0000')).foreach(column =>
    throw new ConfigException(
      s"a column's name cannot have a zero character: rename '${shown(column.name)}'"))

  columns.find(_.depth > Constant.NESTING_MAX).foreach(column =>
    throw new ConfigException(
      s"column '${shown(column.name)}' has ${column.depth} levels within it, and there are at most " +
        s"${Constant.NESTING_MAX} (a map takes two): put fields of inner structs into columns of their own"))

  private val names = columns.map(_.name)
  if (names.toSet.size < names.size) names.diff(names.distinct).headOption.foreach { name =>
    throw new ConfigException(
      s"more than one column is named '${shown(name)}': rename one, or drop it")
  }

  /** The bytes of the names that are too long for their entries, by the number of the entry. */
  private val longNames: IndexedSeq[(Int, Array[Byte])] = entries.zipWithIndex.collect {
    case (Column(name, _, _, _, _), i)
        if name.length > ShortNameMax / 3 && name.getBytes(UTF_8).length > ShortNameMax =>
      i -> name.getBytes(UTF_8)
  }

  longNames.find(_._2.length > Constant.NAME_BYTES_MAX).foreach { case (i, name) =>
    throw new ConfigException(
      s"a column's name has at most ${Constant.NAME_BYTES_MAX} bytes, not ${name.length}: rename " +
        s"'${shown(entries(i).name)}'")
  }

  /** Bytes of the entries, and of the texts after them. */
  private val bytes: Long = entries.size.toLong * At.SIZE + longNames.map(_._2.length + 1L).sum

  if (bytes > Constant.SCHEMA_BYTES_MAX)
    throw new ConfigException(
      s"the names of all ${entries.size} columns need $bytes bytes, and there are at most " +
        s"${Constant.SCHEMA_BYTES_MAX}: give shorter names")

  /** Whether there are columns. */
  def isKnown: Boolean = columns.nonEmpty

  /** Whether values may be in foreign files. */
  def hasViews: Boolean = columns.exists(Format.of(_) == Format.Views)

  /** Whether it does not lie at SCHEMA_OFFSET. */
  def isWide: Boolean = entries.size > Constant.SCHEMA_COLUMNS_MAX || longNames.nonEmpty

  /** What the header says as schema_bytes. */
  def wideBytes: Int = if (isWide) bytes.toInt else 0

  /** Where the blocks of a block file begin. */
  def blockFileRingOffset: Long = Schema.blockFileRingOffset(wideBytes)

  /** The entries, and the texts after them. */
  def toBytes: ByteBuffer = {
    val to = ByteBuffer.allocate(bytes.toInt).order(ByteOrder.LITTLE_ENDIAN)
    val isLong = longNames.iterator.map(_._1).toSet
    entries.zipWithIndex.foreach { case (column, i) =>
      val at = i * At.SIZE
      if (!isLong(i)) Text.write(to, at + At.name, At.format - At.name, column.name)
      Text.write(to, at + At.format, At.childFormat - At.format, column.format)
      Text.write(to, at + At.childFormat, At.flags - At.childFormat, column.childFormat)
      to.putInt(at + At.flags, if (column.nullable) Constant.COLUMN_NULLABLE else 0)
      to.putInt(at + At.children, column.children.size)
    }
    val texts = entries.size * At.SIZE
    var end = texts
    longNames.foreach { case (i, name) =>
      to.putInt(i * At.SIZE + At.nameOffset, end - texts)
      to.putInt(i * At.SIZE + At.nameBytes, name.length)
      to.put(end, name)
      end += name.length + 1
    }
    to
  }

  /** Writes a schema that is not wide into the header of a mapped file, and the size of any schema. */
  def writeHeader(to: ByteBuffer): Unit = {
    to.putInt(Header.schemaBytes, wideBytes)
    if (!isWide) to.put(Constant.SCHEMA_OFFSET, toBytes.array)
    ()
  }
}

private[supply] object Schema {
  /** In UTF-8, without the zero byte at the end. */
  private val ShortNameMax = At.format - At.name - 1

  /** Of a source without elements, for example the end of a stream. */
  val Unknown: Schema = Schema(IndexedSeq.empty)

  /** A name in a message: not all of a long one, and without control characters. */
  def shown(name: String): String = {
    val printable = name.map(c => if (c.isControl) ' ' else c)
    if (printable.length > ShortNameMax) printable.take(ShortNameMax) + "..." else printable
  }

  /** Where the blocks of a block file begin, whose header says these schema_bytes. */
  def blockFileRingOffset(wideBytes: Int): Long =
    Constant.RING_OFFSET + (wideBytes.toLong + Constant.BLOCK_BYTES_UNIT - 1) / Constant.BLOCK_BYTES_UNIT *
      Constant.BLOCK_BYTES_UNIT

  /** The most entries that a header may name, from what it says as schema_bytes. */
  private def mostEntries(wideBytes: Int) =
    if (wideBytes == 0) Constant.SCHEMA_COLUMNS_MAX else Constant.SCHEMA_ENTRIES_MAX

  /**
   * The schema in a file with that header. `wide`: reads that many bytes of the place of wide
   * schemas; may return fewer.
   */
  def read(header: ByteBuffer, entryCount: Int, wide: Int => ByteBuffer): Schema = {
    val wideBytes = header.getInt(Header.schemaBytes)
    if (entryCount < 1 || entryCount > mostEntries(wideBytes))
      throw new ContractException(
        s"schema_columns is $entryCount, not 1 to ${mostEntries(wideBytes)}")
    val least = entryCount * At.SIZE
    if (wideBytes != 0 && (wideBytes < least || wideBytes > Constant.SCHEMA_BYTES_MAX))
      throw new ContractException(
        s"schema_bytes is $wideBytes, not $least to ${Constant.SCHEMA_BYTES_MAX}")
    val bytes =
      if (wideBytes != 0) wide(wideBytes)
      else {
        val copy = ByteBuffer.allocate(least)
        header.get(Constant.SCHEMA_OFFSET, copy.array)
        copy
      }
    if (bytes.limit() < math.max(least, wideBytes))
      throw new ContractException(s"schema_bytes is $wideBytes, and the file ends before")
    new SchemaReader(bytes.order(ByteOrder.LITTLE_ENDIAN), entryCount).read()
  }
}

/** Reads entries and texts of another process, and checks them. */
private final class SchemaReader(from: ByteBuffer, entryCount: Int) {
  private val texts = entryCount * At.SIZE
  private var next = 0

  def read(): Schema = {
    val columns = new ArrayBuffer[Column]
    while (next < entryCount) columns += column(0)
    if (next > entryCount)
      throw new ContractException(
        s"schema_entry.children of column '${Schema.shown(columns.last.name)}' needs more entries than $entryCount")
    try Schema(columns.toIndexedSeq)
    catch {
      case e: ConfigException =>
        throw new ContractException(s"the schema's columns are wrong: ${e.getMessage}")
    }
  }

  private def column(depth: Int): Column = {
    val index = next
    val at = index * At.SIZE
    next += 1
    val name = nameOf(index)
    val format = text(index, "format", At.format, At.childFormat)
    val childFormat = text(index, "child_format", At.childFormat, At.flags)
    val children = from.getInt(at + At.children)
    def shown = Schema.shown(name)
    if (children < 0 || children > entryCount - next)
      throw new ContractException(
        s"schema_entry.children of column '$shown' is ${Integer.toUnsignedString(children)}, and fewer entries follow it")
    if (children > 0 && depth == Constant.NESTING_MAX)
      throw new ContractException(
        s"schema_entry.children of column '$shown' is $children, and it lies too deep to have any")
    val nullable = (from.getInt(at + At.flags) & Constant.COLUMN_NULLABLE) != 0
    Column(name, format, nullable, childFormat, (0 until children).map(_ => column(depth + 1)))
  }

  private def text(index: Int, field: String, begin: Int, end: Int): String = {
    if (from.get(index * At.SIZE + end - 1) != 0)
      throw new ContractException(
        s"schema_entry.$field of column $index is a text without a zero byte at its end")
    Text.read(from, index * At.SIZE + begin, end - begin)
  }

  /** Exactly, also control characters: ranks ask for a column by its name. */
  private def nameOf(index: Int): String = {
    val at = index * At.SIZE
    val bytes = from.getInt(at + At.nameBytes)
    val copy =
      if (bytes == 0) {
        text(index, "name", At.name, At.format)
        val short = new Array[Byte](At.format - At.name)
        from.get(at + At.name, short)
        short.take(short.indexOf(0.toByte))
      } else longName(index, from.getInt(at + At.nameOffset), bytes)
    new String(copy, UTF_8)
  }

  private def longName(index: Int, offset: Int, bytes: Int): Array[Byte] = {
    def refuse(field: String): Nothing = throw new ContractException(
      s"schema_entry.$field of column $index is not that of one of the texts")
    val textBytes = from.limit() - texts
    if (from.get(index * At.SIZE + At.name) != 0) refuse("name")
    if (bytes < 0 || bytes > Constant.NAME_BYTES_MAX || bytes >= textBytes) refuse("name_bytes")
    if (offset < 0 || offset >= textBytes - bytes) refuse("name_offset")
    val copy = new Array[Byte](bytes + 1)
    from.get(texts + offset, copy)
    if (copy.indexOf(0.toByte) != bytes) refuse("name_bytes")
    copy.take(bytes)
  }
}

/** The layout of a column's values in a block, by its format (proto/PROTOCOL.md, "Schema"). */
private[supply] sealed trait Format

private[supply] object Format {
  /** One bit per element. */
  case object Bits extends Format

  /** `bytes` bytes per element. */
  final case class Fixed(bytes: Int) extends Format

  /** Bytes of any length. */
  case object Variable extends Format

  /** Bytes of any length, each value in a foreign file or, if it is short, in its view. */
  case object Views extends Format

  /** As many elements of each child. */
  case object Struct extends Format

  /** Any number of elements of the child; also a map. */
  case object Lists extends Format

  /** `count` elements of the child for each element. */
  final case class FixedLists(count: Int) extends Format

  private val List = """\+w:([1-9][0-9]*)""".r
  private val Decimal = """d:[0-9]+,[0-9]+""".r

  def of(column: Column): Format = column.layout

  private[protocol] def parse(column: Column): Format = column.format match {
    case "b" => Bits
    case "z" | "u" => Variable
    case "vz" => Views
    case Decimal() => Fixed(16)
    case "+s" => Struct
    case "+l" | "+m" => Lists
    case List(count) if column.childFormat.isEmpty => FixedLists(count.toInt)
    case List(count) => Fixed(Math.multiplyExact(count.toInt, bytesOf(column, column.childFormat)))
    case instant if instant.startsWith("tsu:") => Fixed(bytesOf(column, "tsu:"))
    case other => Fixed(bytesOf(column, other))
  }

  private def bytesOf(column: Column, format: String): Int =
    FormatTable.bytes.getOrElse(format,
      throw new IllegalArgumentException(
        s"column '${column.name}' has the format '$format', which the contract does not know"))
}
