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
      blockElements: Int, first: Long, blockBytes: Long = 4096): Seq[Seq[Any]] = {
    var written = Seq.empty[Seq[Any]]
    // The ring is so large that nothing is overwritten.
    withPair(ringBytes = 2000 * blockBytes, blockBytes = blockBytes) { (_, pair) =>
      val writer = new BlockWriter(pair, schema, mainColumn, blockElements)
      (0L until first).foreach(_ => cursor.next())
      writer.startAt(0, 0, first)
      while (cursor.next()) writer.append(cursor)
      writer.flush()
      written = pair.withMappedFile { file =>
        (0 until file.blockCount).map(i => contents(file.slot(i), schema)).takeWhile(_.nonEmpty)
      }.get
      assert(pair.publishedElements == elements(written))
    }
    written
  }

  protected def elements(blocks: Seq[Seq[Any]]): Long =
    blocks.map(_.head.asInstanceOf[Long]).sum

  /** Empty for an unused slot. */
  private def contents(slot: ByteBuffer, schema: Schema): Seq[Any] =
    slot.getInt(Notification.elementCount) match {
      case 0 => Seq.empty
      case elements =>
        val columns = schema.entries.indices.flatMap { column =>
          val at = BlockHeader.SIZE + column * ColumnPlace.SIZE
          Seq(ColumnPlace.validityOffset, ColumnPlace.offsetsOffset, ColumnPlace.dataOffset).map {
            buffer =>
              val bytes = new Array[Byte](slot.getInt(at + buffer + Integer.BYTES))
              slot.get(slot.getInt(at + buffer), bytes)
              (slot.getInt(at + buffer), bytes.toSeq)
          }
        }
        Seq(elements.toLong, slot.getLong(Notification.firstElement),
          slot.getLong(Notification.size)) ++ columns
    }
}
