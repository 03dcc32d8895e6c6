package supply.task

import org.scalatest.funsuite.AnyFunSuite

import supply.lmdb.Datum
import supply.plan.{Groups, Hostfile, Sharing}
import supply.protocol.Schema

class TaskSettingsSuite extends AnyFunSuite {
  private def blockElements(schema: Schema, chosen: Option[Int] = None): Int = {
    val user = SupplySettings(1, "mapped-files.conf", "named-pipes.conf", blockElements = chosen)
    val hosts = Hostfile.oneNode(1)
    TaskSettings(user, hosts, Groups(hosts, Sharing.Off), schema, None).blockElements
  }

  test("a block in place has at most 4096 elements, because the rank waits for it") {
    assert(blockElements(Datum.inPlaceSchema) == 4096)
    assert(blockElements(Datum.schema) == Int.MaxValue)
  }

  test("the number that the user chooses counts") {
    for (schema <- Seq(Datum.schema, Datum.inPlaceSchema))
      assert(blockElements(schema, Some(5000)) == 5000)
  }
}
