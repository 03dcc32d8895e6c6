package supply.driver

import picocli.CommandLine.{Command, Option => Opt}

import supply.core.NamedOptions
import supply.plan.{Shuffle, Uneven}

/**
 * What is said of any source that is supplied: on the Supplier's command line, and as options of a
 * DataFrame's writer.
 */
@Command(name = "supply", sortOptions = false)
final class RunOptions {

  @Opt(
    names = Array("--ranks"),
    paramLabel = "N",
    defaultValue = "1",
    description = Array(
      "MPI ranks to supply, on all nodes together. Spark needs as many task slots. Default: ${DEFAULT-VALUE}.")
  )
  var ranks: Int = _

  @Opt(names = Array("--epochs"), paramLabel = "E", defaultValue = "1",
    description = Array("Passes over the data set. Default: ${DEFAULT-VALUE}."))
  var epochs: Int = _

  @Opt(
    names = Array("--seed"),
    paramLabel = "S",
    defaultValue = "0",
    description = Array(
      "Seed of the order in which each rank gets its elements. The same seed gives the same elements in the same " +
        "order on each rank. Default: ${DEFAULT-VALUE}.")
  )
  var seed: Long = _

  @Opt(
    names = Array("--shuffle"),
    paramLabel = "HOW",
    defaultValue = "partitions",
    description = Array(
      "none: a rank gets its partitions, and the elements of each, in the order of the source. partitions: it gets " +
        "its partitions in a new order in each epoch. elements: the elements of each partition, too, come in a new order, as far as " +
        "--shuffle-buffer reaches. Default: ${DEFAULT-VALUE}.")
  )
  var shuffle: String = _

  @Opt(
    names = Array("--shuffle-buffer"),
    paramLabel = "N",
    defaultValue = "1024",
    description = Array(
      "Elements from which the next one is drawn with --shuffle elements; each task keeps so many in memory. " +
        "As many as a partition has shuffle it wholly. Default: ${DEFAULT-VALUE}.")
  )
  var shuffleBuffer: Int = _

  @Opt(
    names = Array("--uneven"),
    paramLabel = "HOW",
    defaultValue = "keep",
    description = Array(
      "keep: every element comes once in an epoch, and some ranks have more than others. drop: every rank makes as " +
        "many steps in an epoch as the one with the fewest, and what is left is not supplied in that epoch. pad: as many as the one " +
        "with the most, by elements that come again. A step is --block-elements elements of one partition, and a block; or one " +
        "element. The elements are counted first where the source does not know them: a pass of its own. Default: ${DEFAULT-VALUE}.")
  )
  var uneven: String = _

  @Opt(
    names = Array("--block-elements"),
    paramLabel = "N",
    description = Array(
      "Elements after which a block is closed, so that a block is a mini-batch. It is closed earlier when it is " +
        "full, and at the end of a partition. Default: when it is full.")
  )
  var blockElements: Integer = _

  @Opt(
    names = Array("--resident"),
    description = Array(
      "Lets the blocks of the first epoch stay in the mapped file: later epochs notify them again, in their own " +
        "order, and copy nothing. All elements of a rank must fit its ring, as ring= and block= of mapped-files.conf set it; where " +
        "they do not, the run ends with the sizes that they need.")
  )
  var resident: Boolean = _

  @Opt(
    names = Array("--mapped-files"),
    paramLabel = "FILE",
    required = true,
    description = Array(
      "mapped-files.conf: line i names the mapped file of local rank i. The ranks take the same file.")
  )
  var mappedFiles: String = _

  @Opt(
    names = Array("--named-pipes"),
    paramLabel = "FILE",
    required = true,
    description = Array(
      "named-pipes.conf: line i names the request pipe and the notification pipe of local rank i. The ranks " +
        "take the same file.")
  )
  var namedPipes: String = _

  @Opt(
    names = Array("--hosts"),
    paramLabel = "FILE",
    description = Array(
      "Host file in Open MPI's format (host slots=n), the one that mpirun gets: says on which node each rank is. " +
        "Default: all ranks on this node.")
  )
  var hosts: String = _

  @Opt(
    names = Array("--timeout"),
    paramLabel = "SECONDS",
    defaultValue = "120",
    description = Array(
      "Limit of each wait: for executors, for a rank to open its pair, for a rank to release a block. " +
        "Default: ${DEFAULT-VALUE}.")
  )
  var timeout: Double = _

  @Opt(
    names = Array("--wait-for-rank"),
    description = Array(
      "When a rank ends before it has all its data, wait for it to come back, at most the time limit, instead of " +
        "ending the run. It gets what follows the position that it brings (supply_position_save in supply.h), or everything.")
  )
  var waitForRank: Boolean = _

  def settings: SupplySettings = SupplySettings(
    ranks = ranks,
    mappedFiles = mappedFiles,
    namedPipes = namedPipes,
    epochs = epochs,
    seed = seed,
    shuffle = Shuffle.named(shuffle, shuffleBuffer),
    uneven = Uneven.named(uneven),
    blockElements = Option(blockElements).map(_.toInt),
    hosts = Option(hosts),
    timeout = timeout,
    waitForRank = waitForRank,
    resident = resident
  )
}

object RunOptions {

  /** From names without their dashes, as a DataFrame's writer has them. */
  def parse(options: Map[String, String]): RunOptions = NamedOptions.parse(new RunOptions, options)
}
