package supply.block

import java.nio.ByteBuffer

import supply.pair.PairWithRank
import supply.protocol.Schema
import supply.protocol.Layout.{BlockColumn => ColumnPlace, BlockHeader, Notification}
import supply.source.ElementCursor

/** The blocks that a task makes of elements. */
trait WrittenBlocks extends PairWithRank {
  /** Each block's number of elements, position in the source, size, and buffers of the columns. */
  protected def blocks(cursor: ElementCursor, schema: Schema, mainColumn: Option[Int],
      blockElements: Int, first: Long, blockBytes: Long = 4096): Seq[Seq[Any]] =
    slots(cursor, schema, mainColumn, blockElements, first, blockBytes)(contents(_, schema))

  /** The bytes of each block. */
  protected def rawBlocks(cursor: ElementCursor, schema: Schema, mainColumn: Option[Int],
      blockElements: Int): Seq[Array[Byte]] =
    slots(cursor, schema, mainColumn, blockElements, first = 0, blockBytes = 64 << 10) { slot =>
      val bytes = new Array[Byte](slot.getLong(Notification.size).toInt)
      slot.get(0, bytes)
      bytes
    }

  private def slots[A](cursor: ElementCursor, schema: Schema, mainColumn: Option[Int],
      blockElements: Int, first: Long, blockBytes: Long)(read: ByteBuffer => A): Seq[A] = {
    var written = Seq.empty[A]
    // The ring is so large that nothing is overwritten.
    withPair(ringBytes = 2000 * blockBytes, blockBytes = blockBytes) { (_, pair) =>
      val writer = new BlockWriter(pair, schema, mainColumn, blockElements)
      (0L until first).foreach(_ => cursor.next())
      writer.startAt(0, 0, first)
      while (cursor.next()) writer.append(cursor)
      writer.flush()
      val used = pair.withMappedFile(pair.file.path) { file =>
        (0 until file.blockCount).map(file.slot(_)).takeWhile(
          _.getInt(Notification.elementCount) > 0)
          .map(slot => slot.getInt(Notification.elementCount).toLong -> read(slot))
      }.get
      assert(pair.publishedElements == used.map(_._1).sum)
      written = used.map(_._2)
    }
    written
  }

  protected def elements(blocks: Seq[Seq[Any]]): Long =
    blocks.map(_.head.asInstanceOf[Long]).sum

  private def contents(slot: ByteBuffer, schema: Schema): Seq[Any] = {
    val columns = schema.entries.indices.flatMap { column =>
      val at = BlockHeader.SIZE + column * ColumnPlace.SIZE
      Seq(ColumnPlace.validityOffset, ColumnPlace.offsetsOffset, ColumnPlace.dataOffset).map {
        buffer =>
          val bytes = new Array[Byte](slot.getInt(at + buffer + Integer.BYTES))
          slot.get(slot.getInt(at + buffer), bytes)
          (slot.getInt(at + buffer), bytes.toSeq)
      }
    }
    Seq(slot.getInt(Notification.elementCount).toLong, slot.getLong(Notification.firstElement),
      slot.getLong(Notification.size)) ++ columns
  }
}
