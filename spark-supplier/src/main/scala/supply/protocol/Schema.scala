package supply.protocol

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable.ArrayBuffer

import supply.core.{ConfigException, ContractException}
import supply.protocol.Layout.{Constant, SchemaEntry => At}

/** A column of a block, or a child of one. The formats are those of the Arrow C Data Interface. */
private[supply] final case class Column(name: String, format: String, nullable: Boolean = false,
    childFormat: String = "", children: IndexedSeq[Column] = IndexedSeq.empty) {
  /** It and all that is within it, each before its own children: as the contract counts entries. */
  def entries: IndexedSeq[Column] = this +: children.flatMap(_.entries)

  /** How many entries stand before child `number`, from this one on. */
  def entryOf(number: Int): Int = 1 + children.take(number).map(_.entries.size).sum
}

/** The columns of every block of a pair; empty while they are unknown. */
private[supply] final case class Schema(columns: IndexedSeq[Column]) {
  import Schema.NameBytesMax

  /** The columns and all that is within them, in the order of a block's table. */
  val entries: IndexedSeq[Column] = columns.flatMap(_.entries)

  if (entries.size > Constant.SCHEMA_COLUMNS_MAX)
    throw new ConfigException(
      s"a block has at most ${Constant.SCHEMA_COLUMNS_MAX} columns, not ${entries.size}: select fewer, or put " +
        "numbers of one type into an array")
  entries.foreach { column =>
    val bytes = column.name.getBytes(UTF_8).length
    if (bytes < 1 || bytes > NameBytesMax)
      throw new ConfigException(
        s"a column's name has 1 to $NameBytesMax bytes, not $bytes: rename '${column.name}'")
  }

  private val names = columns.map(_.name)
  names.diff(names.distinct).headOption.foreach { name =>
    throw new ConfigException(s"more than one column is named '$name': rename one, or drop it")
  }

  /** Whether there are columns. */
  def isKnown: Boolean = columns.nonEmpty

  /** Whether there are columns within columns. */
  def hasChildren: Boolean = entries.size > columns.size

  /** Whether values may be in foreign files. */
  def hasViews: Boolean = columns.exists(Format.of(_) == Format.Views)

  /** Writes the entries into the header of a mapped file. */
  def write(to: ByteBuffer): Unit = entries.zipWithIndex.foreach { case (column, i) =>
    val at = Constant.SCHEMA_OFFSET + i * At.SIZE
    Text.write(to, at + At.name, At.format - At.name, column.name)
    Text.write(to, at + At.format, At.childFormat - At.format, column.format)
    Text.write(to, at + At.childFormat, At.flags - At.childFormat, column.childFormat)
    to.putInt(at + At.flags, if (column.nullable) Constant.COLUMN_NULLABLE else 0)
    to.putInt(at + At.children, column.children.size)
  }
}

private[supply] object Schema {
  /** In UTF-8, without the zero byte at the end. */
  private val NameBytesMax = At.format - At.name - 1

  /** Of a source without elements, for example the end of a stream. */
  val Unknown: Schema = Schema(IndexedSeq.empty)

  def read(from: ByteBuffer, entryCount: Int): Schema = {
    if (entryCount < 1 || entryCount > Constant.SCHEMA_COLUMNS_MAX)
      throw new ContractException(
        s"schema_columns is $entryCount, not 1 to ${Constant.SCHEMA_COLUMNS_MAX}")
    var next = 0
    def column(depth: Int): Column = {
      val at = Constant.SCHEMA_OFFSET + next * At.SIZE
      next += 1
      val name = Text.read(from, at + At.name, At.format - At.name)
      val children = from.getInt(at + At.children)
      if (children < 0 || children > entryCount - next)
        throw new ContractException(
          s"schema_entry.children of column '$name' is ${Integer.toUnsignedString(children)}, and fewer entries follow it")
      if (children > 0 && depth == Constant.NESTING_MAX)
        throw new ContractException(
          s"schema_entry.children of column '$name' is $children, and it lies too deep to have any")
      Column(
        name,
        Text.read(from, at + At.format, At.childFormat - At.format),
        (from.getInt(at + At.flags) & Constant.COLUMN_NULLABLE) != 0,
        Text.read(from, at + At.childFormat, At.flags - At.childFormat),
        (0 until children).map(_ => column(depth + 1)))
    }
    val columns = new ArrayBuffer[Column]
    while (next < entryCount) columns += column(0)
    if (next > entryCount)
      throw new ContractException(
        s"schema_entry.children of column '${columns.last.name}' needs more entries than $entryCount")
    try Schema(columns.toIndexedSeq)
    catch {
      case e: ConfigException =>
        throw new ContractException(s"the schema's columns are wrong: ${e.getMessage}")
    }
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

  def of(column: Column): Format = column.format match {
    case "b" => Bits
    case "z" | "u" => Variable
    case "vz" => Views
    case "tdD" | "tiM" => Fixed(4)
    case "tDu" | "ttn" => Fixed(8)
    case Decimal() => Fixed(16)
    case "+s" => Struct
    case "+l" | "+m" => Lists
    case List(count) if column.childFormat.isEmpty => FixedLists(count.toInt)
    case List(count) =>
      Fixed(Math.multiplyExact(count.toInt, numberBytes(column, column.childFormat)))
    case instant if instant.startsWith("tsu:") => Fixed(8)
    case number => Fixed(numberBytes(column, number))
  }

  private def numberBytes(column: Column, format: String): Int = format match {
    case "c" | "C" => 1
    case "s" | "S" | "e" => 2
    case "i" | "I" | "f" => 4
    case "l" | "L" | "g" => 8
    case _ => throw new IllegalArgumentException(
        s"column '${column.name}' has the format '$format', which the contract does not know")
  }
}
