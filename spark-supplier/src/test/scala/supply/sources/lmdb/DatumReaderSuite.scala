package supply.sources.lmdb

import java.nio.{ByteBuffer, ByteOrder}

import com.google.protobuf.{ByteString, UnknownFieldSet}
import org.fusesource.lmdbjni.DirectBuffer
import org.scalacheck.{Arbitrary, Gen}
import org.scalatest.funsuite.AnyFunSuite

import scala.jdk.CollectionConverters._

import supply.sources.lmdb.CaffeProtos.{Datum => Proto}
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

  private val datums: Gen[Proto] = {
    val numbers =
      Gen.option(Gen.oneOf(Gen.choose(Int.MinValue, Int.MaxValue), Gen.const(0), Gen.const(-1)))
    for {
      channels <- numbers
      height <- numbers
      width <- numbers
      label <- numbers
      data <- Gen.option(Gen.resize(300, Arbitrary.arbitrary[Array[Byte]]))
      floats <- Gen.listOf(Arbitrary.arbitrary[Float])
      encoded <- Gen.option(Gen.oneOf(true, false))
      unknown <- Gen.option(Gen.choose(8, 4000))
    } yield {
      val builder = Proto.newBuilder()
      channels.foreach(builder.setChannels)
      height.foreach(builder.setHeight)
      width.foreach(builder.setWidth)
      label.foreach(builder.setLabel)
      data.foreach(bytes => builder.setData(ByteString.copyFrom(bytes)))
      floats.foreach(builder.addFloatData)
      encoded.foreach(builder.setEncoded)
      if (builder.buildPartial().getSerializedSize > 0) {
        unknown.foreach { field =>
          val group = UnknownFieldSet.newBuilder().addField(1,
            UnknownFieldSet.Field.newBuilder().addVarint(5).build()).build()
          builder.setUnknownFields(UnknownFieldSet.newBuilder()
              .addField(field,
                UnknownFieldSet.Field.newBuilder().addVarint(-1).addFixed32(1).addFixed64(2)
                  .addLengthDelimited(ByteString.copyFromUtf8("abc")).build())
              .addField(field + 1,
                UnknownFieldSet.Field.newBuilder().addGroup(group).build()).build())
        }
      }
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
    read(packed)
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
    Seq("hello", "this is a text file\n", "zzzz").foreach { text =>
      assertThrows[DatumReader.NotADatum](read(text.getBytes("US-ASCII")))
    }
  }

  test("an empty value is a Datum of defaults") {
    assertReads(Proto.getDefaultInstance, Array.emptyByteArray)
  }
}
