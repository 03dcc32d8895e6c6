package supply.data

/** How large each partition is, in a unit as [[PartitionSizes.Elements]] or "bytes". */
final case class PartitionSizes(sizes: IndexedSeq[Long], unit: String)

object PartitionSizes {
  final val Elements = "elements"
}
