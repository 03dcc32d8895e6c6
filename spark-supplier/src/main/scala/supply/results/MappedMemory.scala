package supply.results

import org.apache.spark.unsafe.Platform

import supply.core.ContractException

/**
 * Reads the memory of a mapped file. If another process cuts the file, its memory is gone, and the
 * JVM throws an InternalError: here, or later in code that is compiled ([[OpenResults]]). Spark
 * would end the executor for it. `where`: file and block, for the message.
 */
private[results] final class MappedMemory(where: String) {
  def byte(address: Long): Byte =
    try Platform.getByte(null, address)
    catch { case e: InternalError => gone(e) }

  def short(address: Long): Short =
    try Platform.getShort(null, address)
    catch { case e: InternalError => gone(e) }

  def int(address: Long): Int =
    try Platform.getInt(null, address)
    catch { case e: InternalError => gone(e) }

  def long(address: Long): Long =
    try Platform.getLong(null, address)
    catch { case e: InternalError => gone(e) }

  def float(address: Long): Float =
    try Platform.getFloat(null, address)
    catch { case e: InternalError => gone(e) }

  def double(address: Long): Double =
    try Platform.getDouble(null, address)
    catch { case e: InternalError => gone(e) }

  /** Copies `bytes` into an array whose first value lies at `offset`, and returns the array. */
  def copy[A <: AnyRef](address: Long, array: A, offset: Int, bytes: Long): A =
    try {
      Platform.copyMemory(null, address, array, offset.toLong, bytes)
      array
    } catch { case e: InternalError => gone(e) }

  /** Bit `index` of a bitmap. */
  def bit(bitmap: Long, index: Int): Boolean =
    (byte(bitmap + (index >> 3)) & (1 << (index & 7))) != 0

  private def gone(e: InternalError): Nothing =
    throw new ContractException(s"$where: the file was cut after it was sealed ($e)")
}
