package supply.sources.lmdb

import java.nio.ByteOrder

import org.fusesource.lmdbjni.DirectBuffer

import supply.data.{ElementWriter, ForeignFile}
import supply.protocol.Layout.Constant.VIEW_INLINE_MAX
import supply.sources.Datum

/** A Datum whose data stays in its file: everything that a block says about it. */
private[lmdb] final class DatumReference {
  private var key = Array.emptyByteArray
  private var label = 0
  private var channels = 0
  private var height = 0
  private var width = 0
  private var encoded = false

  /** Bytes of the data. */
  var dataBytes = 0

  /** Where the data begins in the file. */
  private var offset = 0L

  /** Its first four bytes, little-endian. */
  private var start = 0

  /** All of it, if it is so short that the contract wants it in the view. */
  private val short = new Array[Byte](VIEW_INLINE_MAX)

  /** Takes over what the reader has found in the value. `offset` is that of the data. */
  def set(key: DirectBuffer, value: DirectBuffer, datum: DatumReader, offset: Long): Unit = {
    if (this.key.length != key.capacity()) this.key = new Array(key.capacity())
    key.getBytes(0, this.key)
    label = datum.label
    channels = datum.channels
    height = datum.height
    width = datum.width
    encoded = datum.encoded
    dataBytes = datum.dataBytes
    this.offset = offset
    if (dataBytes > VIEW_INLINE_MAX) start = value.getInt(datum.dataOffset, ByteOrder.LITTLE_ENDIAN)
    else value.getBytes(datum.dataOffset, short, 0, dataBytes)
    ()
  }

  def write(to: ElementWriter, file: ForeignFile): Unit = {
    to.reserve(Datum.Key, key.length).put(key)
    to.putInt(Datum.Label, label)
    to.putInt(Datum.Channels, channels)
    to.putInt(Datum.Height, height)
    to.putInt(Datum.Width, width)
    to.putBoolean(Datum.Encoded, encoded)
    if (dataBytes > VIEW_INLINE_MAX) to.refer(Datum.Data, file, offset, dataBytes, start)
    else to.reserve(Datum.Data, dataBytes).put(short, 0, dataBytes)
    ()
  }

  def describe: String = s"the element '${Datum.printable(key)}' ($dataBytes bytes of data)"
}
