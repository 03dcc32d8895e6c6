package supply.results

import java.math.{BigDecimal, BigInteger}

import org.apache.spark.sql.types.{Decimal, DecimalType}

/** 128 bits, two's complement. */
private final class DecimalColumn(in: ColumnBuffers, decimal: DecimalType)
    extends MappedColumn(in, decimal) {
  private val largest = if (decimal.precision > Decimal.MAX_LONG_DIGITS) Long.MaxValue
  else BigInteger.TEN.pow(decimal.precision).longValue - 1

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null
    else {
      val low = memory.long(data + 16L * row)
      val high = memory.long(data + 16L * row + 8)
      if (decimal.precision <= Decimal.MAX_LONG_DIGITS) {
        if (high != low >> 63 || low > largest || low < -largest) refuseDigits(row)
        Decimal.createUnsafe(low, decimal.precision, decimal.scale)
      } else {
        val unscaled = BigInteger.valueOf(high).shiftLeft(64).add(UnsignedLong.toBigInteger(low))
        val value = new BigDecimal(unscaled, decimal.scale)
        if (value.precision > decimal.precision) refuseDigits(row)
        Decimal(value, decimal.precision, decimal.scale)
      }
    }

  private def refuseDigits(row: Int): Nothing =
    refuseValue(row, s"the value has more than ${decimal.precision} digits")
}

/** 64 bits without a sign, which only a decimal of Spark can hold. */
private final class UnsignedLongColumn(in: ColumnBuffers, decimal: DecimalType)
    extends MappedColumn(in, decimal) {
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null
    else Decimal(new BigDecimal(UnsignedLong.toBigInteger(memory.long(data + 8L * row))),
      decimal.precision, decimal.scale)
}

private object UnsignedLong {
  private val TwoTo64 = BigInteger.ONE.shiftLeft(64)

  def toBigInteger(bits: Long): BigInteger = {
    val signed = BigInteger.valueOf(bits)
    if (bits < 0) signed.add(TwoTo64) else signed
  }
}
