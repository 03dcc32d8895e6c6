package supply.protocol

import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException

class SchemaSuite extends AnyFunSuite {

  private def refused(names: String*): String =
    intercept[ConfigException](Schema(names.map(Column(_, "i")).toIndexedSeq)).getMessage

  private def numbered(count: Int): Seq[String] = (0 until count).map(i => s"column_$i")

  test("the maximum number of columns is accepted, and one more is refused") {
    val most = Layout.Constant.SCHEMA_COLUMNS_MAX
    assert(Schema(numbered(most).map(Column(_, "i")).toIndexedSeq).columns.size == most)
    assert(refused(numbered(most + 1): _*) ==
      s"a block has at most $most columns, not ${most + 1}: select fewer, or put numbers of one type into an array")
  }

  test("a name that is too long is refused by name") {
    val longest = "ü" * 63 + "x"
    assert(Schema(Vector(Column(longest, "i"))).columns.head.name == longest)
    assert(refused("a",
      longest + "y") == s"a column's name has 1 to 127 bytes, not 128: rename '${longest}y'")
    assert(refused("").contains("1 to 127 bytes, not 0"))
  }

  test("two columns of the same name are refused: a rank asks for a column by its name") {
    assert(refused("a", "b", "a") == "more than one column is named 'a': rename one, or drop it")
  }
}
