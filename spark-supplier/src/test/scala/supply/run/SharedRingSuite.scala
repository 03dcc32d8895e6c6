package supply.run

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.core.FailureText
import supply.plan.{Groups, Sharing, Shuffle, Uneven}
import supply.task.SupplySettings

/** Whole runs whose ranks read rings in groups. */
class SharedRingSuite extends AnyFunSuite with RunsWithRanks {
  private def source(elements: Int, partitions: Int) =
    new DatumSource(sc.parallelize(0 until elements, partitions).map(SupplyJobSuite.tuple))

  private def shared(share: String)(settings: SupplySettings) =
    settings.copy(share = Sharing.named(share))

  test("groups get what as many single ranks get, and each of their ranks gets all of it") {
    val settings = Seq(Shuffle.Partitions, Shuffle.Off, Shuffle.Elements(4)).map(shuffle =>
      (shuffle, Uneven.Keep: Uneven)) ++ Seq((Shuffle.Partitions, Uneven.Drop),
      (Shuffle.Off, Uneven.Pad))
    for ((shuffle, uneven) <- settings) {
      def run(ranks: Int, share: String) = {
        val (seen, outcome) =
          supply(ranks, epochs = 2, seed = 3, shuffle = shuffle, uneven = uneven,
            more = shared(share))(source(37, 6))
        assert(outcome.isRight, outcome)
        seen
      }
      val single = run(2, "1")
      assert(run(4, "2") == single.flatMap(seen => Seq(seen, seen)), shuffle)
    }
  }

  test("all ranks of a node read one ring") {
    val (alone, _) = supply(1, epochs = 2)(source(20, 4))
    val (seen, outcome) = supply(3, epochs = 2, more = shared("node"))(source(20, 4))
    assert(seen == Seq.fill(3)(alone.head))
    assert(outcome.toOption.get.map(report => report.rank -> report.elements) == Seq(0 -> 40))
  }

  test("later epochs come from one resident file") {
    val (seen, outcome) = supply(4, epochs = 3, resident = true, more = shared("2"))(source(30, 6))
    assert(outcome.isRight, outcome)
    assert(seen(0) == seen(1) && seen(2) == seen(3) && seen(0) != seen(2))
    assert(seen.forall(_.count(_.startsWith("END_OF_EPOCH")) == 3))
  }

  test("a resident file that outlives a run is of these groups alone") {
    def name(groups: Range*) = KeptName(1L, source(8, 2), 4, Groups(groups.toIndexedSeq), "digits")
    val (halves, uneven) = (name(0 until 2, 2 until 4), name(0 until 1, 1 until 4))
    assert(halves == name(0 until 2, 2 until 4))
    assert(Set(halves, uneven, name(0 until 4), name(0 until 3, 3 until 4)).size == 4)
  }

  test("ranks that are no groups are refused, on both sides") {
    val (seen, outcome) = supply(4, more = shared("2"))(source(8, 2))
    assert(outcome.isRight && seen.forall(_.last == "END_OF_DATA"))
    val (others, failed) = supply(2,
      more = settings =>
        if (settings.mappedFiles.isEmpty) settings else shared("2")(settings))(source(8, 2))
    assert(FailureText.of(failed.left.toOption.get).contains("the only reader of its ring"))
    assert(others.forall(_.last.contains("SUPPLY_SHARE")))
  }

  test("a run goes on at the position that the ranks of a group share") {
    var saved = Seq.empty[String]
    val (first, _) = supply(4, epochs = 1, more = shared("2"),
      take = { rank =>
        val before = (1 to 2).map { _ =>
          val next = rank("next")
          assert(rank("release " + next.split(' ')(1)) == "OK")
          next
        }
        synchronized { saved = saved :+ s"${rank.paths.mappedFile.last}${rank.position()}" }
        before ++ rank.drain()
      })(source(40, 6))
    val positions = saved.sorted.map(_.tail)
    assert(positions(0) == positions(1) && positions(2) == positions(3))
    val (rest, outcome) = supply(4, epochs = 1, more = shared("2"),
      resumePositions = Some(positions.mkString(",")))(source(40, 6))
    assert(outcome.isRight, outcome)
    assert(rest == first.map(seen => renumbered(seen.drop(2))))
  }

  /** As the first blocks of a new pair. */
  private def renumbered(seen: Seq[String]): Seq[String] = seen.zipWithIndex.map {
    case (line, index) if line.startsWith("OK ") =>
      line.split(' ').updated(1, index.toString).mkString(" ")
    case (line, _) => line
  }
}
