package supply.bench

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.TaskContext
import org.apache.spark.sql.DataFrame

/**
 * Sends the rows of a DataFrame to receivers on loopback sockets, one write for each row, as
 * Alchemist does: from Spark's tasks, in the messages that bench/c/row_receiver.c reads.
 */
object RowSockets {
  private val HeaderBytes = 2 * java.lang.Long.BYTES

  /**
   * data: a column of arrays of doubles. ports: the receivers, which get whole partitions in turn.
   * Returns the number of rows when the receivers have stored all of them. round: another one for
   * each call, so that a receiver knows where a matrix begins.
   */
  def send(data: DataFrame, ports: Array[Int], round: Long): Long =
    // Spark's own rows, because a Row would box each number.
    data.queryExecution.toRdd.mapPartitions { rows =>
      val partition = TaskContext.getPartitionId()
      val receiver = new Consumer(ports(partition % ports.length))
      try {
        var buffer = ByteBuffer.allocateDirect(HeaderBytes).order(ByteOrder.LITTLE_ENDIAN)
        buffer.putLong(round).putLong(partition.toLong)
        receiver.send(buffer)
        var count = 0L
        rows.foreach { row =>
          val values = row.getArray(0).toDoubleArray()
          val bytes = HeaderBytes + values.length * java.lang.Double.BYTES
          if (buffer.capacity < bytes)
            buffer = ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN)
          buffer.putLong(count).putLong(values.length.toLong)
          buffer.asDoubleBuffer().put(values)
          receiver.send(buffer.position(bytes))
          count += 1
        }
        receiver.send(buffer.putLong(count).putLong(EndOfPartition))
        receiver.awaitRead()
        Iterator.single(count)
      } finally receiver.close()
    }.collect().sum

  private val EndOfPartition = -1L
}
