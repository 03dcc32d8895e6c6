package supply.pair

import org.scalacheck.{Arbitrary, Gen}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.SupplyException
import supply.protocol.Layout
import supply.testing.{AllCases, TemporaryFolder}

/**
 * Whatever a rank's files hold, a task continues, or refuses it with a message: no crash, no other
 * exception, no hang.
 */
class AnyBytesSuite extends AnyFunSuite with PairOverFiles with AllCases {

  private implicit val many: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 1000)

  private val mapped = released(0)
  private val requests = read("rank.requests")

  private val interesting = Gen.oneOf(0L, 1L, -1L, 2L, 0x7fffffffL, 0x80000000L, 0xffffffffL,
    Long.MaxValue, Long.MinValue, 4096L, 65536L)

  /** Eight bytes somewhere in the header or the schema, mostly in the fields that are numbers. */
  private val patches: Gen[(Int, Array[Byte])] = for {
    at <- Gen.frequency(4 -> Gen.choose(0, 43).map(4 * _),
      1 -> Gen.choose(0, Layout.Constant.SCHEMA_OFFSET + 400))
    number <- Gen.oneOf(interesting, Arbitrary.arbitrary[Long])
    width <- Gen.oneOf(1, 4, 8)
  } yield at -> Array.tabulate(width)(i => (number >>> (8 * i)).toByte)

  private def patched(bytes: Array[Byte], patches: Seq[(Int, Array[Byte])]): Array[Byte] = {
    val copy = bytes.clone()
    patches.foreach { case (at, patch) =>
      System.arraycopy(patch, 0, copy, at, math.min(patch.length, copy.length - at))
    }
    copy
  }

  private def continuesOrRefuses(mapped: Array[Byte], requests: Array[Byte]): Unit =
    try TemporaryFolder(folder => withPair(folder, mapped, requests)(consume))
    catch {
      case e: SupplyException => assert(e.getMessage.nonEmpty)
      // The rank has not published a version yet: a task waits.
      case _: NoSuchElementException if mapped.slice(8, 12).forall(_ == 0) => ()
    }

  test("any header and schema") {
    forAll(Gen.listOfN(3, patches), Gen.choose(1, 3))((all, count) =>
      continuesOrRefuses(patched(mapped, all.take(count)), requests))
  }

  test("any requests") {
    forAll(Arbitrary.arbitrary[Array[Byte]])(continuesOrRefuses(mapped, _))
  }

  test("requests that are nearly right") {
    forAll(Gen.choose(0, requests.length - 1), Arbitrary.arbitrary[Byte],
      Gen.choose(0, requests.length)) { (at, byte, length) =>
      continuesOrRefuses(mapped, requests.updated(at, byte).take(length))
    }
  }

  test("a mapped file that is cut off") {
    forAll(Gen.choose(0, mapped.length)) { length =>
      try continuesOrRefuses(mapped.take(length), requests)
      catch { case _: NoSuchElementException if length < Layout.Constant.RING_OFFSET => () }
    }
  }
}
