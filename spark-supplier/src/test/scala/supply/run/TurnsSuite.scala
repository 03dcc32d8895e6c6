package supply.run

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

import supply.run.Turns._

class TurnsSuite extends AnyFunSuite {
  private val open, ended = mutable.Set.empty[String]

  private def turns(offer: Offer, silent: Double = 60, opening: Double = 60): Turns = {
    open.clear()
    ended.clear()
    new Turns(() => offer, open, name => { ended += name; () }, silent, opening)
  }

  private def slots(count: Int) = Map(Slot("node", withDevices = false) -> count)
  private def needs(count: Int, ranks: Int = 0) = Needs(slots(count), Map("node" -> ranks))
  private def cards(perTask: Double, addresses: String*) =
    Offer(slots(100), Map("node" -> addresses), perTask)

  test("runs that do not fit beside each other have their turns in the order of their questions") {
    val made = turns(Offer(slots(4)))
    assert(made.ask("a", needs(3)).state == Held)
    assert(made.ask("b", needs(2)).state == Waits)
    // It fits, and was here later.
    assert(made.ask("c", needs(1)).state == Waits)
    assert(made.ask("a", needs(3)).state == Held)
    made.release("a")
    assert(made.ask("c", needs(1)).state == Waits)
    assert(made.ask("b", needs(2)).state == Held)
    assert(made.ask("c", needs(1)).state == Held)
  }

  test(
    "a client that no longer asks gives up its place, and its turn when the hub has closed its run") {
    val made = turns(Offer(slots(2)), silent = 0.2)
    assert(made.ask("a", needs(2)).state == Held)
    open += "a"
    assert(made.ask("b", needs(2)).state == Waits)
    Thread.sleep(300)
    assert(made.ask("c", needs(2)).state == Waits)
    open -= "a"
    assert(made.ask("c", needs(2)).state == Held)
  }

  test("a run that never reaches the hub keeps its turn for a time only") {
    val made = turns(Offer(slots(2)), opening = 0.2)
    assert(made.ask("a", needs(2)).state == Held)
    assert(made.ask("b", needs(2)).state == Waits)
    Thread.sleep(300)
    assert(made.ask("b", needs(2)).state == Held)
  }

  test("idle ranks are asked to end when their slots lack, and are refused the next call") {
    val made = turns(Offer(slots(4)))
    assert(made.ask("a", needs(3)).state == Held)
    made.becomeIdle("a", needs(1))
    assert(made.ask("b", needs(3)).state == Held)
    assert(ended.isEmpty)
    made.release("b")
    assert(made.ask("c", needs(4)).state == Waits)
    assert(ended == Set("a"))
    assert(made.ask("a", needs(3)).state == Gone)
    assert(made.ask("c", needs(4)).state == Waits)
    made.release("a")
    assert(made.ask("c", needs(4)).state == Held)
  }

  test("idle ranks have their next call, also after a wait, and not without their executors") {
    var offered = Offer(slots(4))
    val made = new Turns(() => offered, _ => true, name => { ended += name; () })
    assert(made.ask("a", needs(3)).state == Held)
    made.becomeIdle("a", needs(1))
    assert(made.ask("b", needs(3)).state == Held)
    assert(made.ask("a", needs(3)).state == Waits)
    made.release("b")
    assert(made.ask("a", needs(3)).state == Held)
    made.becomeIdle("a", needs(1))
    offered = Offer(Map.empty)
    assert(made.ask("a", needs(3)).state == Gone)
  }

  test("runs at once have different cards, and idle ranks give theirs to a run that needs them") {
    val made = turns(cards(1, "3", "5"))
    assert(made.ask("a", needs(1, ranks = 1)).gpus == Map("node" -> Seq("3")))
    made.becomeIdle("a", needs(1))
    assert(made.ask("b", needs(1, ranks = 1)).gpus == Map("node" -> Seq("5")))
    assert(ended.isEmpty)
    made.release("b")
    assert(made.ask("c", needs(1, ranks = 2)).state == Waits)
    assert(ended == Set("a"))
    made.release("a")
    assert(made.ask("c", needs(1, ranks = 2)).gpus == Map("node" -> Seq("3", "5")))
  }

  test("without an amount all ranks see all cards, and only those of idle ranks must be free") {
    val made = turns(cards(0, "0", "1"))
    assert(made.ask("a", needs(1, ranks = 1)).gpus == Map("node" -> Seq("0", "1")))
    assert(made.ask("b", needs(1, ranks = -1)).gpus == Map("node" -> Seq("0", "1")))
    made.becomeIdle("a", needs(1))
    assert(made.ask("c", needs(1, ranks = 1)).state == Waits)
    assert(ended == Set("a"))
    // A run without ranks on that host needs none.
    made.release("c")
    assert(made.ask("d", needs(1)).state == Held)
  }

  test("ranks that share a card leave the rest of it to others") {
    val made = turns(cards(0.5, "7"))
    assert(made.ask("a", needs(1, ranks = 1)).gpus == Map("node" -> Seq("7")))
    made.becomeIdle("a", needs(1))
    assert(made.ask("b", needs(1, ranks = 1)).gpus == Map("node" -> Seq("7")))
    made.release("b")
    assert(made.ask("c", needs(1, ranks = 2)).state == Waits)
    assert(ended == Set("a"))
  }
}
