package supply.plan

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import supply.ConfigException

class HostsSuite extends AnyFunSuite {

  private def read(text: String, ranks: Int): Hosts = {
    val file = Files.createTempFile("hosts", "")
    try Hosts.read(Files.writeString(file, text).toString, ranks)
    finally Files.delete(file)
  }

  test("rank r is number r of the slots, in the order of the file") {
    val hosts =
      read("# cluster\nnode-a slots=2\nnode-b # one slot\nnode-c slots=4 max_slots=8\n", 5)
    assert(hosts.places == Seq(
      RankPlace(Some("node-a"), 0), RankPlace(Some("node-a"), 1),
      RankPlace(Some("node-b"), 0),
      RankPlace(Some("node-c"), 0), RankPlace(Some("node-c"), 1)))
  }

  test("the places of a host are together, and without a host file there is no host") {
    assert(read("a slots=2\nb\n", 3).byHost == Seq(
      "a" -> Seq(RankPlace(Some("a"), 0), RankPlace(Some("a"), 1)),
      "b" -> Seq(RankPlace(Some("b"), 0))))
    assert(Hosts(None, 3).byHost.isEmpty)
  }

  test("too few slots, a bad number and a repeated host are refused") {
    assert(intercept[ConfigException](read("a slots=2\n", 3)).getMessage.contains(
        "2 slots for 3 ranks"))
    assert(intercept[ConfigException](read("a slots=x\n", 1)).getMessage.contains("'x'"))
    assert(intercept[ConfigException](read("a\nb\na\n", 1)).getMessage.contains("names a twice"))
    assert(intercept[ConfigException](Hosts.read("/nowhere/hosts", 1)).getMessage.contains(
        "/nowhere/hosts"))
  }

  test("a place is on its host by name, by short name and by address, and on no other") {
    assert(RankPlace(Some("node-a"), 0).isOn("node-a"))
    assert(RankPlace(Some("node-a"), 0).isOn("node-a.cluster.example"))
    assert(RankPlace(Some("localhost"), 0).isOn("127.0.0.1"))
    assert(!RankPlace(Some("node-a"), 0).isOn("node-b"))
    assert(RankPlace(Some("10.0.0.1"), 0).isOn("10.0.0.1"))
    assert(!RankPlace(Some("10.0.0.1"), 0).isOn("10.0.0.2"))
    assert(!RankPlace(Some("::ffff:10.0.0.1"), 0).isOn("::ffff:10.0.0.2"))
    assert(RankPlace(None, 0).isOn("anything"))
  }
}
