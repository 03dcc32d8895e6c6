package supply.protocol

import org.scalatest.funsuite.AnyFunSuite

/** The texts of supply_position_to_text(); OtherRanksSuite reads those of real ranks. */
class SavedPositionSuite extends AnyFunSuite {

  test("a text has the epoch, the place in it and the plan") {
    assert(SavedPosition.read("position-1:3:1:7:41:00000000000000ff").contains(
        SavedPosition(Position(3, Some(7 -> 41L)), 255)))
    assert(SavedPosition.read("position-1:2:0:0:0:ffffffffffffffff").contains(
        SavedPosition(Position(2, None), -1)))
    assert(SavedPosition.read("no-position").contains(SavedPosition(Position.Start, 0)))
  }

  test("the largest numbers lie after all data") {
    assert(SavedPosition.read(
        "position-1:4294967295:1:4294967295:18446744073709551615:0000000000000000").contains(
        SavedPosition(Position(Int.MaxValue, Some(Int.MaxValue -> Long.MaxValue)), 0)))
  }

  test("a position of an exchange is known as one") {
    val plain = "position-1:3:1:7:41:00000000000000ff"
    Seq("0:0:0000000000000001", "12:4711:89abcdef01234567",
      "4294967295:whole:ffffffffffffffff",
      "1:18446744073709551615:0123456789abcdef").foreach { exchange =>
      assert(SavedPosition.read(s"$plain:exchange:$exchange").contains(
          SavedPosition(Position(3, Some(7 -> 41L)), 255, isInExchange = true)), exchange)
    }
  }

  test("any other text is none") {
    Seq("", "position", "position-2:0:0:0:0:0000000000000000",
      "position-1:0:2:0:0:0000000000000000",
      "position-1:-1:0:0:0:0000000000000000", "position-1:0:0:0:0:0",
      " position-1:0:0:0:0:0000000000000000",
      "no-position:exchange:2:3:0000000000000001",
      "position-1:0:0:0:0:0000000000000000:",
      "position-1:0:0:0:0:0000000000000000:exchange",
      "position-1:0:0:0:0:0000000000000000:exchange:2:3",
      "position-1:0:0:0:0:0000000000000000:exchange:2:all:0000000000000001",
      "position-1:0:0:0:0:0000000000000000:exchange:-2:3:0000000000000001",
      "position-1:0:0:0:0:0000000000000000:exchange:whole:3:0000000000000001",
      "position-1:0:0:0:0:0000000000000000:exchange:2:3:1",
      "position-1:0:0:0:0:0000000000000000:exchange:2:3:0000000000000000",
      "position-1:0:0:0:0:0000000000000000:exchange:2:3:0000000000000001:",
      "position-1:0:0:0:0:0000000000000000:exchange:1:2:3:0000000000000001").foreach { text =>
      assert(SavedPosition.read(text).isEmpty, text)
    }
  }
}
