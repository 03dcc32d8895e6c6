package supply.plan

import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.protocol.SavedPosition

class GroupsSuite extends AnyFunSuite {
  private def hosts(
      slots: (String, Int)*): Hostfile = Hostfile(slots.flatMap { case (host, ranks) =>
    (0 until ranks).map(RankPlacement(Some(host), _))
  }.toIndexedSeq)

  private def refused(hosts: Hostfile, sharing: Sharing): String =
    intercept[ConfigException](Groups(hosts, sharing)).getMessage

  test("neighbours, nodes, or each rank alone") {
    val four = hosts("a" -> 4, "b" -> 2)
    assert(Groups(four, Sharing.Off).ranks.map(_.toSeq) == (0 until 6).map(Seq(_)))
    assert(Groups(four, Sharing.named("2")).ranks.map(_.toSeq) == Seq(Seq(0, 1), Seq(2, 3),
      Seq(4, 5)))
    assert(Groups(four, Sharing.named("node")).ranks.map(_.toSeq) == Seq(0 to 3, 4 to 5))
    assert(Groups(Hostfile.oneNode(3), Sharing.OfNode).ranks == Seq(0 until 3))
    assert(Groups(four, Sharing.OfNode).places(four).places == Seq(four.places(0), four.places(4)))
  }

  test("a group that is not on one node, or a number that leaves ranks over, is refused by name") {
    assert(refused(hosts("a" -> 5), Sharing.named("2")).contains(
        "--share is 2, and there are 5 ranks"))
    assert(refused(hosts("a" -> 3, "b" -> 3), Sharing.named("2")).contains("ranks 2 to 3"))
    assert(refused(hosts("a" -> 1, "b" -> 2, "c" -> 1), Sharing.named("2")).contains(
        "ranks 0 to 1"))
    for (wrong <- Seq("0", "-1", "nodes", "", "1.5", "99999999999"))
      assert(intercept[ConfigException](Sharing.named(wrong)).getMessage.contains("--share"))
  }

  test("ranks of a group have one position") {
    def position(text: String) = SavedPosition.read(text).get
    val (first, second) =
      ("position-1:0:1:2:3:0000000000000001", "position-1:0:1:2:4:0000000000000001")
    val two = Groups(Hostfile.oneNode(4), Sharing.named("2"))
    def of(texts: Seq[String], sharing: Sharing, now: Groups = two) =
      Groups.positions(texts.map(position).toIndexedSeq, sharing, now)
    assert(of(Seq(first, first, second, second), Sharing.named("2")) ==
      Seq(position(first), position(second)))
    assert(of(Seq(first, second), Sharing.Off).size == 2)
    val text = intercept[ConfigException](of(Seq(first, first, first, second), Sharing.named("2")))
    assert(text.getMessage.contains(
        "ranks 2 and 3 read one ring (--share), and have saved other positions"))
    val node = Groups(Hostfile.oneNode(2), Sharing.OfNode)
    assert(of(Seq(first, first), Sharing.OfNode, node) == Seq(position(first)))
    assert(intercept[ConfigException](of(Seq(first), Sharing.OfNode, node)).getMessage.contains(
        "as many ranks on each node"))
  }
}
