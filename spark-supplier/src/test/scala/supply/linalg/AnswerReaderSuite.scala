package supply.linalg

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

import org.scalacheck.{Arbitrary, Gen}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ContractException
import supply.testing.AllCases

/** Whatever a rank sends, it is an answer, or refused with a message: no crash, no other exception. */
class AnswerReaderSuite extends AnyFunSuite with AllCases {
  private implicit val many: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 1000)

  private val data = Array[Byte](1, 2, 3, 4, 5, 6, 7, 8)
  private val lines = Seq("""{"progress": 0.25}""", """{"done": {"handle": 7, "bytes": 8}}""")
  private val whole = lines.mkString("", "\n", "\n").getBytes(UTF_8) ++ data

  /** What is known after the bytes came in parts of that size. */
  private def answerTo(bytes: Array[Byte], part: Int = 1 << 20, dataMax: Long = 1 << 10,
      show: Double => Unit = _ => ()): Option[Answer] = {
    val reader = new AnswerReader(dataMax, show)
    bytes.grouped(part).foreach(some => reader.take(ByteBuffer.wrap(some)))
    reader.answer
  }

  private def answerOrRefusal(bytes: Array[Byte], part: Int): Unit =
    try {
      answerTo(bytes, part)
      ()
    } catch { case e: ContractException => assert(e.getMessage.nonEmpty) }

  private def refusal(line: String): String =
    intercept[ContractException](answerTo(s"$line\n".getBytes(UTF_8))).getMessage

  test("an answer with data, in parts of any size") {
    forAll(Gen.choose(1, whole.length)) { part =>
      var shown = Seq.empty[Double]
      answerTo(whole, part, show = shown :+= _) match {
        case Some(Answer.Done(line, received)) =>
          assert(line == """{"handle":7,"bytes":8}""")
          assert(received.sameElements(data))
        case other => fail(s"$other")
      }
      assert(shown == Seq(0.25))
    }
  }

  test("an answer that has not ended is none yet") {
    forAll(Gen.choose(0, whole.length - 1))(end => assert(answerTo(whole.take(end)).isEmpty))
  }

  test("errors, of a rank that lives and of one that ends") {
    assert(answerTo("{\"error\": \"no\"}\n".getBytes(UTF_8)) == Some(Answer.Failed("no")))
    assert(answerTo("{\"error\": \"signal 11\", \"ended\": true}\n".getBytes(UTF_8)) ==
      Some(Answer.Lost("signal 11", isOwnText = true)))
  }

  test("what is no answer is refused") {
    assert(refusal("42").contains("neither progress"))
    assert(refusal("{").contains("not JSON"))
    assert(refusal("\u0000\u0000:\u0000:").contains("not JSON"))
    assert(refusal("[" * 100000).contains("not JSON"))
    assert(refusal(" " * (1 << 20) + "x").contains("more than 1048576 bytes"))
    assert(refusal("""{"done": {"bytes": -1}}""").contains("-1 bytes of data"))
    assert(refusal("""{"done": {"bytes": 1025}}""").contains("at most 1024"))
  }

  test("any bytes") {
    forAll(Arbitrary.arbitrary[Array[Byte]], Gen.choose(1, 64))(answerOrRefusal)
  }

  test("answers with any byte changed") {
    forAll(Gen.choose(0, whole.length - 1), Arbitrary.arbitrary[Byte], Gen.choose(1, 64)) {
      (at, byte, part) => answerOrRefusal(whole.updated(at, byte), part)
    }
  }
}
