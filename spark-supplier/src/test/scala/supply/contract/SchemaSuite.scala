package supply.contract

import org.scalatest.funsuite.AnyFunSuite

import supply.ConfigException

class SchemaSuite extends AnyFunSuite {

  private def refused(names: String*): String =
    intercept[ConfigException](Schema(names.map(Column(_, "i")).toIndexedSeq)).getMessage

  test("as many columns as there is room for, and one more") {
    val most = Layout.Constant.SCHEMA_COLUMNS_MAX
    assert(Schema(Vector.fill(most)(Column("x", "i"))).columns.size == most)
    assert(refused(Seq.fill(most + 1)("x"): _*) ==
      s"a block has at most $most columns, not ${most + 1}: select fewer, or put numbers of one type into an array")
  }

  test("a name that there is no room for is named") {
    val longest = "ü" * 63 + "x"
    assert(Schema(Vector(Column(longest, "i"))).columns.head.name == longest)
    assert(refused("a", longest + "y") == s"a column's name has 1 to 127 bytes, not 128: rename '${longest}y'")
    assert(refused("").contains("1 to 127 bytes, not 0"))
  }
}
