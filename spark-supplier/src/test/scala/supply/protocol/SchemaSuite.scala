package supply.protocol

import java.nio.{ByteBuffer, ByteOrder}

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, ContractException}
import supply.protocol.Layout.{Constant, MappedFileHeader => At, SchemaEntry}

class SchemaSuite extends AnyFunSuite {

  private def refused(names: String*): String =
    intercept[ConfigException](Schema(names.map(Column(_, "i")).toIndexedSeq)).getMessage

  private def numbered(count: Int): Seq[String] = (0 until count).map(i => s"column_$i")

  test("the maximum number of columns is accepted, and one more is refused") {
    val most = Layout.Constant.SCHEMA_ENTRIES_MAX
    assert(Schema(numbered(most).map(Column(_, "i")).toIndexedSeq).columns.size == most)
    assert(refused(numbered(most + 1): _*) ==
      s"a block has at most $most columns, not ${most + 1}: select fewer, or put numbers of one type into an array")
  }

  test("a name that is too long, or has a zero character, is refused by name") {
    val longest = "ü" * 32767 + "x"
    assert(Schema(Vector(Column(longest, "i"))).columns.head.name == longest)
    assert(refused("a", longest + "y") ==
      s"a column's name has at most 65535 bytes, not 65536: rename '${"ü" * 127}...'")
    assert(refused("a", "b\u0000c").contains("cannot have a zero character: rename 'b c'"))
    assert(refused((0 until 300).map(i => s"$i" + "x" * 60000): _*).contains("give shorter names"))
  }

  test("columns within each other, of any kind, are as many as a rank reads") {
    def struct(inside: Column) = Column("a", "+s", children = Vector(inside))
    def list(inside: Column) = Column("a", "+l", children = Vector(inside))
    def fixed(inside: Column) = Column("a", "+w:2", children = Vector(inside))
    def map(inside: Column) =
      Column("a", "+m",
        children = Vector(Column("entries", "+s", children = Vector(Column("key", "i"), inside))))
    for ((nest, levels) <- Seq(struct _ -> 1, list _ -> 1, fixed _ -> 1, map _ -> 2)) {
      val most = Iterator.iterate(Column("x", "i"))(nest).drop(Constant.NESTING_MAX / levels).next()
      val schema = Schema(Vector(Column("id", "l"), most))
      val (header, wide) = written(schema)
      assert(readBack(header, wide, schema.entries.size) == schema)
      assert(intercept[ConfigException](Schema(Vector(Column("id", "l"),
              nest(most)))).getMessage.startsWith(
          s"column 'a' has ${32 + levels} levels within it, and there are at most 32 (a map takes two)"))
    }
  }

  private def written(schema: Schema): (ByteBuffer, ByteBuffer) = {
    val header = ByteBuffer.allocate(Constant.RING_OFFSET).order(ByteOrder.LITTLE_ENDIAN)
    schema.writeHeader(header)
    (header, if (schema.isWide) schema.toBytes else ByteBuffer.allocate(0))
  }

  private def readBack(header: ByteBuffer, wide: ByteBuffer, entries: Int): Schema =
    Schema.read(header, entries, count => wide.duplicate().limit(math.min(count, wide.capacity)))

  test(
    "schemas are read as they were written: names of any text, more columns than fit before the ring") {
    val names =
      Seq("", "a.b", "with \"quotes\" and 'quotes'", "two\nlines\t", "😀", "x" * 127, "y" * 128,
        "ü" * 64, "z" * 65535)
    val nested = Column("s", "+s", children = Vector(Column("n" * 500, "i"), Column("", "u")))
    for (columns <- Seq(
        names.map(Column(_, "i")).toIndexedSeq, numbered(320).map(Column(_, "g")).toIndexedSeq,
        numbered(321).map(Column(_, "g", nullable = true)).toIndexedSeq,
        numbered(10000).map(Column(_, "+w:3", childFormat = "f")).toIndexedSeq, Vector(nested))) {
      val schema = Schema(columns)
      val (header, wide) = written(schema)
      assert(readBack(header, wide, schema.entries.size) == schema)
      assert(schema.isWide == (columns.size != 320))
    }
  }

  test("a wide schema that contradicts itself is refused by the field") {
    def refusedWith(words: String*)(change: (ByteBuffer, ByteBuffer) => Unit): Unit = {
      val (header, wide) = written(Schema(Vector(Column("n" * 300, "i"), Column("x", "i"))))
      change(header, wide.order(ByteOrder.LITTLE_ENDIAN))
      val message = intercept[ContractException](readBack(header, wide, 2)).getMessage
      words.foreach(word => assert(message.contains(word), message))
    }
    val texts = 2 * SchemaEntry.SIZE
    for (bytes <- Seq(texts - 1, -1, Constant.SCHEMA_BYTES_MAX + 1))
      refusedWith(s"schema_bytes is $bytes")((header, _) => header.putInt(At.schemaBytes, bytes))
    refusedWith("the file ends before")((header, _) =>
      header.putInt(At.schemaBytes, header.getInt(At.schemaBytes) + 1))
    for (bytes <- Seq(-1, 65536, 299, 301))
      refusedWith("schema_entry.name_bytes of column 0")((_, wide) =>
        wide.putInt(SchemaEntry.nameBytes, bytes))
    for (offset <- Seq(-1, 1, Int.MaxValue))
      refusedWith("schema_entry.name_offset of column 0")((_, wide) =>
        wide.putInt(SchemaEntry.nameOffset, offset))
    refusedWith("schema_entry.name_bytes of column 0")((_, wide) => wide.put(texts + 100, 0.toByte))
    refusedWith("schema_entry.name_bytes of column 0")((_, wide) =>
      wide.put(texts + 300, 'n'.toByte))
    refusedWith("schema_entry.name of column 0")((_, wide) => wide.put(0, 'n'.toByte))
    refusedWith("schema_entry.format of column 1")((_, wide) =>
      wide.put(SchemaEntry.SIZE + SchemaEntry.childFormat - 1, 'f'.toByte))
  }

  test("two columns of the same name are refused: a rank asks for a column by its name") {
    assert(refused("a", "b", "a") == "more than one column is named 'a': rename one, or drop it")
  }
}
