package supply.lmdb

import java.nio.{ByteBuffer, ByteOrder}

import com.google.protobuf.ByteString
import org.fusesource.lmdbjni.DirectBuffer
import org.scalacheck.{Arbitrary, Gen}
import org.scalatest.funsuite.AnyFunSuite

import scala.jdk.CollectionConverters._

import supply.lmdb.CaffeProtos.{Datum => Proto}
import supply.testing.AllCases

/** Protobuf's own parser is the oracle. */
class DatumReaderSuite extends AnyFunSuite with AllCases {
  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 500)

  private val reader = new DatumReader

  private def direct(bytes: Array[Byte]): DirectBuffer = {
    val buffer = ByteBuffer.allocateDirect(bytes.length)
    buffer.put(bytes)
    new DirectBuffer(buffer)
  }

  private def data(): Array[Byte] = {
    val buffer = ByteBuffer.allocate(reader.dataBytes)
    reader.copyData(buffer)
    assert(!buffer.hasRemaining)
    buffer.array()
  }

  private def expectedData(datum: Proto): Array[Byte] =
    if (!datum.getData.isEmpty) datum.getData.toByteArray
    else {
      val buffer = ByteBuffer.allocate(4 * datum.getFloatDataCount).order(ByteOrder.LITTLE_ENDIAN)
      datum.getFloatDataList.asScala.foreach(buffer.putFloat(_))
      buffer.array()
    }

  private val anyNumber =
    Gen.option(Gen.oneOf(Gen.choose(Int.MinValue, Int.MaxValue), Gen.const(0), Gen.const(-1)))

  /** Encoded ones have any shape, the others as many values as their shape says. */
  private val datums: Gen[Proto] = {
    val sizes = Gen.option(Gen.choose(0, 7))
    for {
      encoded <- Gen.option(Gen.oneOf(true, false))
      isEncoded = encoded.contains(true)
      channels <- if (isEncoded) anyNumber else sizes
      height <- if (isEncoded) anyNumber else sizes
      width <- if (isEncoded) anyNumber else sizes
      label <- anyNumber
      values = Seq(channels, height, width).map(_.getOrElse(0)).product
      hasData <- Gen.oneOf(true, false)
      data <-
        if (isEncoded) Gen.option(Gen.resize(300, Arbitrary.arbitrary[Array[Byte]]))
        else if (hasData) Gen.listOfN(values, Arbitrary.arbitrary[Byte]).map(all =>
          Option(all.toArray))
        else Gen.const(Option.empty[Array[Byte]])
      floats <-
        if (isEncoded) Gen.listOf(Arbitrary.arbitrary[Float])
        else if (hasData) Gen.const(Nil)
        else Gen.listOfN(values, Arbitrary.arbitrary[Float])
    } yield {
      val builder = Proto.newBuilder()
      channels.foreach(builder.setChannels)
      height.foreach(builder.setHeight)
      width.foreach(builder.setWidth)
      label.foreach(builder.setLabel)
      data.foreach(bytes => builder.setData(ByteString.copyFrom(bytes)))
      floats.foreach(builder.addFloatData)
      encoded.foreach(builder.setEncoded)
      builder.build()
    }
  }

  private def read(bytes: Array[Byte]): Unit = reader.read(direct(bytes), bytes.length)

  private def assertReads(datum: Proto, wire: Array[Byte]): Unit = {
    read(wire)
    assert(reader.label == datum.getLabel)
    assert(reader.channels == datum.getChannels)
    assert(reader.height == datum.getHeight)
    assert(reader.width == datum.getWidth)
    assert(reader.encoded == datum.getEncoded)
    assert(data().toSeq == expectedData(datum).toSeq)
  }

  test("reads every Datum as protobuf does") {
    forAll(datums)(datum => assertReads(datum, datum.toByteArray))
  }

  test("packed float_data is read, too") {
    val packed = Array[Byte](0x32, 8, 0, 0, -128, 63, 0, 0, 0, 64)
    read(packed ++ Proto.newBuilder().setChannels(2).setHeight(1).setWidth(1).build().toByteArray)
    assert(data().toSeq == packed.drop(2).toSeq)
  }

  test("the last one of a repeated field counts, as in protobuf") {
    val twice =
      Proto.newBuilder().setLabel(1).setData(ByteString.copyFromUtf8("ab")).build().toByteArray ++
        Proto.newBuilder().setLabel(2).setData(ByteString.copyFromUtf8("xyz")).build().toByteArray
    assertReads(Proto.parseFrom(twice), twice)
  }

  test("any bytes are read or refused, never read beyond their end") {
    forAll(Gen.resize(200, Arbitrary.arbitrary[Array[Byte]])) { bytes =>
      try { read(bytes); data(); () }
      catch { case _: DatumReader.NotADatum => () }
    }
  }

  test("a Datum that is cut off or damaged is read or refused") {
    forAll(datums, Gen.choose(0, 400), Gen.choose(0, 255)) { (datum, at, byte) =>
      val wire = datum.toByteArray
      val damaged = if (at < wire.length) wire.updated(at, byte.toByte) else wire
      Seq(damaged, wire.take(at)).foreach { bytes =>
        try { read(bytes); data(); () }
        catch { case _: DatumReader.NotADatum => () }
      }
    }
  }

  test("text is not a Datum") {
    // "50000" reads as the tag of float_data, and four bytes.
    Seq("hello", "this is a text file\n", "zzzz", "50000", "12345", "0").foreach { text =>
      assertThrows[DatumReader.NotADatum](read(text.getBytes("US-ASCII")))
    }
  }

  test("a shape that contradicts the values is no Datum") {
    def square(values: Int) = Proto.newBuilder().setChannels(1).setHeight(8).setWidth(8)
      .setData(ByteString.copyFrom(new Array[Byte](values))).build().toByteArray
    read(square(64))
    Seq(0, 63, 65, 256).foreach(values =>
      assertThrows[DatumReader.NotADatum](read(square(values))))
    Seq((-1, -1, 64), (1 << 16, 1 << 16, 1 << 16), (1 << 31, 2, 0)).foreach { case (c, h, w) =>
      val datum = Proto.newBuilder().setChannels(c).setHeight(h).setWidth(w)
        .setData(ByteString.copyFrom(new Array[Byte](64))).build()
      assertThrows[DatumReader.NotADatum](read(datum.toByteArray))
    }
  }

  test("a field that Datums do not have is named") {
    val unknown = Proto.newBuilder().setLabel(1).build().toByteArray ++ Array[Byte](0x40, 1)
    assert(intercept[DatumReader.NotADatum](read(unknown)).getMessage.contains("a field 8"))
  }

  test("an empty value is a Datum of defaults") {
    assertReads(Proto.getDefaultInstance, Array.emptyByteArray)
  }
}
