package supply.task

import org.scalatest.funsuite.AnyFunSuite

import supply.lmdb.Datum
import supply.plan.Hostfile
import supply.protocol.Schema

class TaskSettingsSuite extends AnyFunSuite {
  private def blockElements(
      schema: Schema, chosen: Option[Int] = None, resident: Boolean = false): Int = {
    val user = SupplySettings(1, "mapped-files.conf", "named-pipes.conf", blockElements = chosen,
      resident = resident)
    TaskSettings(user, Hostfile.oneNode(1), schema, None).blockElements
  }

  test("a block in place has at most 4096 elements, because the rank waits for it") {
    assert(blockElements(Datum.inPlaceSchema) == 4096)
    assert(blockElements(Datum.schema) == Int.MaxValue)
  }

  test("a resident block in place is filled, because it takes a whole slot") {
    assert(blockElements(Datum.inPlaceSchema, resident = true) == Int.MaxValue)
  }

  test("the number that the user chooses counts") {
    for (schema <- Seq(Datum.schema, Datum.inPlaceSchema); resident <- Seq(false, true))
      assert(blockElements(schema, Some(5000), resident) == 5000)
  }
}
