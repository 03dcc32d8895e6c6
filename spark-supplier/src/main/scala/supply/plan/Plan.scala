package supply.plan

import java.util.Random

import supply.core.ConfigException
import supply.protocol.Exchange
import supply.protocol.Layout.Constant.EXCHANGE_FRACTION_UNIT

/**
 * Which rank gets which partitions of the source, in which order, in which epoch: a pure function
 * of these arguments. A partition belongs to the same rank in every whole epoch, so what Spark has
 * cached of it on the rank's node stays useful. A batch of a stream is the epoch `firstEpoch` of
 * many. With `rest`, the first epoch is the rest of one in which an earlier run stopped. With
 * `globalBatch` each gets all partitions in one order ([[GlobalOrder]]); `doneElements`: of the first
 * epoch, which earlier runs have supplied.
 */
private[supply] final case class Plan(
    partitions: Int, ranks: Int, epochs: Int, seed: Long, shuffle: Shuffle = Shuffle.Partitions,
    equalSteps: Option[EqualSteps] = None,
    firstEpoch: Int = 0,
    rest: Option[Rest] = None,
    globalBatch: Option[Int] = None,
    doneElements: Long = 0) {
  require(partitions >= 0 && ranks >= 1 && epochs >= 0,
    s"no plan for $partitions partitions, $ranks ranks, $epochs epochs")

  def epochNumbers: Range = firstEpoch until firstEpoch + epochs

  /** The rank's partitions in a whole epoch, ascending. */
  def partitionsOf(rank: Int): IndexedSeq[Int] =
    if (globalBatch.isDefined) 0 until partitions else rank until partitions by ranks

  /** Where that epoch begins in the one order of its elements; None: each rank has its own order. */
  def sequenceFrom(epoch: Int): Option[Long] =
    globalBatch.map(_ => if (epoch == firstEpoch) doneElements else 0)

  /** The partitions that the rank gets in any epoch, ascending. */
  def partitionsEver(rank: Int): IndexedSeq[Int] = {
    val first = rest.fold(IndexedSeq.empty[Part])(_.left(rank))
    (first.map(_.partition) ++ partitionsOf(rank)).distinct.sorted
  }

  def isRest(epoch: Int): Boolean =
    rest.exists(_.epoch == epoch) || (epoch == firstEpoch && doneElements > 0)

  /** Equal for plans, and numbers of elements, with which a position means the same. Never 0. */
  def fingerprint(elements: Option[Long]): Long = {
    val order = shuffle match {
      case Shuffle.Partitions => Seq.empty
      case Shuffle.Off => Seq(1L)
      case Shuffle.Elements(buffer) => Seq(2L, buffer.toLong)
      case Shuffle.All(fraction) => Seq(6L, fraction.toLong)
    }
    val amounts = equalSteps.toSeq.flatMap(steps =>
      Seq(if (steps.isPadded) 4L else 3L, steps.stepElements.toLong) ++ steps.counted)
    // In one order, a position means the same with any number of ranks.
    val orders = if (globalBatch.isDefined) 1 else ranks
    val source = Seq(partitions.toLong, orders.toLong, seed, elements.getOrElse(-1L))
    val batches = globalBatch.toSeq.flatMap(batch => Seq(7L, batch.toLong))
    (source ++ order ++ amounts ++ batches ++ rest.toSeq.flatMap(5L +: _.numbers))
      .foldLeft(0L)((hash, part) => Plan.mix(hash ^ Plan.mix(part))) match {
      case 0 => 1
      case hash => hash
    }
  }

  /** What the ranks exchange of the elements that they get. */
  def exchange: Exchange = shuffle match {
    case Shuffle.All(fraction) => Exchange.all(seed, fraction)
    case Shuffle.Off | Shuffle.Partitions | Shuffle.Elements(_) => Exchange.Off
  }

  /** Number of elements that each rank gets in a whole epoch, by rank, if known. */
  def rankElements(partitionElements: Option[IndexedSeq[Long]]): Option[IndexedSeq[Long]] =
    equalSteps.map(equal => IndexedSeq.fill(ranks)(equal.steps * equal.stepElements)).orElse(
      partitionElements.map(elements =>
        (0 until ranks).map(partitionsOf(_).map(elements).sum)))

  /** Number of elements that all ranks get in a whole epoch, if known. */
  def elements(partitionElements: Option[IndexedSeq[Long]]): Option[Long] =
    rankElements(partitionElements).map(_.sum)

  /** The number in all epochs together, of the first one only what is left. */
  def elementsOfAllEpochs(partitionElements: Option[IndexedSeq[Long]]): Option[Long] =
    for {
      whole <- elements(partitionElements)
      first <- suppliedRest.fold(Option(0L))(_.elements(partitionElements))
    } yield first + whole * wholeEpochs -
      (if (epochs > 0) math.min(doneElements * ranks, whole) else 0)

  /** How often ranks get a partition, or a part of one, in all epochs together. */
  def partitionsOfAllEpochs: Long =
    suppliedRest.fold(0L)(_.left.map(_.size.toLong).sum) +
      partitions.toLong * wholeEpochs * (if (globalBatch.isDefined) ranks else 1)

  private def suppliedRest: Option[Rest] = rest.filter(_ => epochs > 0)

  private def wholeEpochs: Int = epochs - suppliedRest.size

  /** The rank's partitions in the order of that epoch, as a whole one. */
  def order(rank: Int, epoch: Int): IndexedSeq[Int] =
    shuffled(partitionsOf(rank), if (globalBatch.isDefined) 0 else rank, epoch)

  /** What the rank gets in that epoch, in order. */
  def parts(rank: Int, epoch: Int): IndexedSeq[Part] = rest.filter(_.epoch == epoch) match {
    case Some(rest) => rest.parts(rank)
    case None =>
      val all = order(rank, epoch)
      equalSteps.fold(all.map(Part(_)))(_.shares(all).map { case (partition, share) =>
        Part(partition, share = Some(share))
      })
  }

  /** As [[parts]], but whole: equal steps leave nothing out, and no part has a share. */
  private[plan] def all(rank: Int, epoch: Int): IndexedSeq[Part] =
    rest.filter(_.epoch == epoch).fold(order(rank, epoch).map(Part(_)))(_.left(rank))

  /** The seed of the order of a partition's elements in that epoch. */
  def elementSeed(partition: Int, epoch: Int): Long =
    Plan.mix(Plan.mix(Plan.mix(Plan.mix(seed) ^ epoch) + 1) ^ partition)

  /** The order in which the rank gets what it has in that epoch. */
  private[plan] def shuffled[A](own: IndexedSeq[A], rank: Int, epoch: Int): IndexedSeq[A] =
    if (shuffle == Shuffle.Off) own
    else {
      val order = own.toBuffer
      // The sequence of java.util.Random is specified, and this shuffle (Fisher-Yates) stands here:
      // plans do not change with the version of a library.
      val random = new Random(Plan.mix(Plan.mix(Plan.mix(seed) + epoch) + rank))
      for (i <- order.indices.reverse) {
        val j = random.nextInt(i + 1)
        val swapped = order(i)
        order(i) = order(j)
        order(j) = swapped
      }
      order.toIndexedSeq
    }
}

private[supply] object Plan {
  /** The finalizer of SplitMix64: neighbouring seeds give unrelated sequences. */
  private def mix(value: Long): Long = {
    var z = value + 0x9e3779b97f4a7c15L
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL
    z ^ (z >>> 31)
  }
}

/**
 * What a rank gets of a partition in one epoch: not the first `done` elements, which an earlier run
 * has supplied. A `share` ends it earlier, or repeats elements.
 */
private[supply] final case class Part(partition: Int, done: Long = 0, share: Option[Share] = None)

/** In which order a rank gets its elements. */
sealed trait Shuffle extends Product with java.io.Serializable

object Shuffle {
  /** The order of the source, in every epoch. */
  case object Off extends Shuffle

  /** Partitions in a new order in each epoch; the elements of each in the order of the source. */
  case object Partitions extends Shuffle

  /** As [[Partitions]], with each element drawn from the next `buffer` ones of its partition. */
  final case class Elements(buffer: Int) extends Shuffle

  /** As [[Partitions]]; then the ranks exchange that many of EXCHANGE_FRACTION_UNIT elements. */
  final case class All(fraction: Int = EXCHANGE_FRACTION_UNIT) extends Shuffle

  /** Elements from which the next one is drawn, unless the user names another number. */
  private val DefaultBuffer = 1024

  /** Throws a ConfigException if a value is wrong, or has no effect on this shuffle. */
  def named(name: String, buffer: Option[Int] = None,
      exchangeFraction: Option[Double] = None): Shuffle = {
    val shuffle = named(name, buffer.getOrElse(DefaultBuffer), exchangeFraction)
    def only(option: String, isGiven: Boolean, of: String): Unit =
      if (isGiven && name != of) throw new ConfigException(
        s"--$option is for --shuffle $of, and --shuffle is '$name': give both, or neither")
    only("exchange-fraction", exchangeFraction.isDefined, "all")
    only("shuffle-buffer", buffer.isDefined, "rows")
    shuffle
  }

  private def named(name: String, buffer: Int, exchangeFraction: Option[Double]): Shuffle =
    name match {
      case "none" => Off
      case "partitions" => Partitions
      case "rows" =>
        if (buffer < 1)
          throw new ConfigException(s"--shuffle-buffer is $buffer: it must be at least 1")
        Elements(buffer)
      case "all" => exchangeFraction.fold(All())(all)
      case other =>
        throw new ConfigException(
          s"--shuffle is '$other': it must be none, partitions, rows or all")
    }

  private def all(fraction: Double): All = {
    val millionths = math.round(fraction * EXCHANGE_FRACTION_UNIT)
    if (millionths < 1 || !(fraction <= 1)) throw new ConfigException(
      s"--exchange-fraction is $fraction: it must be at least ${1.0 / EXCHANGE_FRACTION_UNIT} and at most 1")
    All(millionths.toInt)
  }
}
