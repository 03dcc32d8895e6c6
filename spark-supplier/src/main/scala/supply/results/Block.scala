package supply.results

import supply.protocol.Column

/** A checked block: its elements, and the buffers of each column of the schema. */
final class Block private[results] (
    val elements: Int, private[results] val columns: IndexedSeq[ColumnBuffers]) {
  /** A column for Spark. The memory is the file's, so the vector has nothing to close. */
  def vector(column: Int): MappedColumn = MappedColumn(columns(column))
}

/**
 * Where the values of one column of a block lie.
 *
 * @param where file, block and column, for messages
 * @param validity address of the bitmap; 0: no element is null
 */
private[results] final class ColumnBuffers(
    val where: String,
    val memory: MappedMemory,
    val column: Column,
    val elements: Int,
    val nullCount: Int,
    val validity: Long,
    val offsets: Long,
    val data: Long,
    val dataBytes: Int)
