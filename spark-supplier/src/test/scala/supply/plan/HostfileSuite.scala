package supply.plan

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException

class HostfileSuite extends AnyFunSuite {

  private def read(text: String, ranks: Int): Hostfile = {
    val file = Files.createTempFile("hosts", "")
    try Hostfile.read(Files.writeString(file, text).toString, ranks)
    finally Files.delete(file)
  }

  test("rank r gets slot r, in the order of the file") {
    val hosts =
      read("# cluster\nnode-a slots=2\nnode-b # one slot\nnode-c slots=4 max_slots=8\n", 5)
    assert(hosts.places == Seq(
      RankPlacement(Some("node-a"), 0),
      RankPlacement(Some("node-a"), 1),
      RankPlacement(Some("node-b"), 0),
      RankPlacement(Some("node-c"), 0),
      RankPlacement(Some("node-c"), 1)))
  }

  test("slots without ranks take no memory") {
    assert(read("a slots=2147483647\nb slots=2147483647\n", 1).places ==
      Seq(RankPlacement(Some("a"), 0)))
  }

  test("the places of a host are together, and without a host file there is no host") {
    assert(read("a slots=2\nb\n", 3).byHost == Seq(
      "a" -> Seq(RankPlacement(Some("a"), 0), RankPlacement(Some("a"), 1)),
      "b" -> Seq(RankPlacement(Some("b"), 0))))
    assert(Hostfile(None, 3).byHost.isEmpty)
  }

  test("too few slots, a bad number and a repeated host are refused") {
    assert(intercept[ConfigException](read("a slots=2\n", 3)).getMessage.contains(
        "2 slots for 3 ranks"))
    assert(intercept[ConfigException](read("a slots=x\n", 1)).getMessage.contains("'x'"))
    assert(intercept[ConfigException](read("a\nb\na\n", 1)).getMessage.contains("names a twice"))
    assert(intercept[ConfigException](Hostfile.read("/nowhere/hosts", 1)).getMessage.contains(
        "/nowhere/hosts"))
  }

  test(
    "a byte order mark is no part of a name, and MPICH's slots are refused with how to write them") {
    assert(read("\ufeffa slots=2\n", 1).places == Seq(RankPlacement(Some("a"), 0)))
    assert(read("fd00::2 slots=1\n", 1).places == Seq(RankPlacement(Some("fd00::2"), 0)))
    for ((line, host) <- Seq("localhost:2" -> "localhost", "10.0.0.1:2 # two" -> "10.0.0.1",
        "a.b:2 slots=1" -> "a.b"))
      assert(intercept[ConfigException](read(s"x\n$line\n", 1)).getMessage.contains(
          s":2: '$host:2' is no name of a host: write '$host slots=2'"))
  }

  test("a place is on its host by name, by short name and by address, and on no other") {
    assert(RankPlacement(Some("node-a"), 0).isOn("node-a"))
    assert(RankPlacement(Some("node-a"), 0).isOn("node-a.cluster.example"))
    assert(RankPlacement(Some("localhost"), 0, Set("127.0.0.1")).isOn("127.0.0.1"))
    assert(!RankPlacement(Some("localhost"), 0).isOn("127.0.0.1"))
    assert(!RankPlacement(Some("node-a"), 0).isOn("node-b"))
    assert(!RankPlacement(Some("gpu1.east.test"), 0).isOn("gpu1.west.test"))
    assert(RankPlacement(Some("gpu1.east.test"), 0).isOn("gpu1"))
    assert(RankPlacement(Some("10.0.0.1"), 0).isOn("10.0.0.1"))
    assert(!RankPlacement(Some("10.0.0.1"), 0).isOn("10.0.0.2"))
    assert(!RankPlacement(Some("::ffff:10.0.0.1"), 0).isOn("::ffff:10.0.0.2"))
    assert(RankPlacement(None, 0).isOn("anything"))
    assert(RankPlacement(Some("Node-A.Cluster"), 0).isOn("node-a.cluster"))
    assert(RankPlacement(Some("node_a"), 0).isOn("NODE_A.cluster.example"))
    assert(RankPlacement(Some("fd00::2"), 0).isOn("[fd00::2]"))
    assert(!RankPlacement(Some("fd00::2"), 0).isOn("[fd00::3]"))
  }
}
