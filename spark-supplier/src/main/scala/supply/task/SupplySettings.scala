package supply.task

import supply.block.{PairResidentFile, ResidentFileNames, ResidentSpace}
import supply.core.{ConfigException, Deadline}
import supply.pair.{ConfigFiles, Pair, ResidentPlace}
import supply.plan.{GlobalOrder, Groups, Hostfile, Sharing, Shuffle, Uneven}
import supply.protocol.{EpochCounts, Exchange, Schema}

/**
 * What a user asks for: RunOptions says what each option means. `texts`: of files that are given by
 * options themselves, by the names that the settings have for them. `isQuiet`: the caller shows warnings
 * and progress itself. `emptyError`: what is wrong if no rank gets any element; None: nothing is.
 */
final case class SupplySettings(
    ranks: Int,
    mappedFiles: String,
    namedPipes: String,
    epochs: Int = 1,
    seed: Long = 0,
    blockElements: Option[Int] = None,
    hosts: Option[String] = None,
    timeout: Double = 120,
    rankTimeout: Option[Double] = None,
    waitForRank: Boolean = false,
    resident: Boolean = false,
    residentFolder: Option[String] = None,
    residentQuota: Option[Long] = None,
    keep: Option[String] = None,
    shuffle: Shuffle = Shuffle.Partitions,
    uneven: Uneven = Uneven.Keep,
    resumePositions: Option[String] = None,
    globalBatch: Option[Int] = None,
    share: Sharing = Sharing.Off,
    texts: Map[String, String] = Map.empty,
    isQuiet: Boolean = false,
    emptyError: Option[String] = None,
    serve: Option[String] = None,
    serveSecret: Option[String] = None,
    reconnectTimeout: Double = 30) {
  /** How ranks connect, if they do. */
  private[supply] def served: Option[Served] = serve.flatMap(Served.read)

  def configFiles: ConfigFiles =
    served.fold(ConfigFiles(mappedFiles, namedPipes, texts))(_.configFiles(ranks))

  /**
   * The places of the ranks. Throws a ConfigException if the host file is wrong, or, with all ranks
   * on this node, the config files are.
   */
  def readHosts(): Hostfile = {
    if (hosts.isEmpty) configFiles.read(ranks)
    Hostfile(hosts, ranks, texts)
  }

  /**
   * Which ranks read one ring. With one order of all elements, each node has one ring, and each rank that
   * connects.
   */
  def sharing: Sharing = if (globalBatch.isDefined && serve.isEmpty) Sharing.OfNode else share

  /** The limit of a wait for a rank that may live, in seconds. */
  def secondsOfRank: Double = rankTimeout.getOrElse(timeout)

  /** Where the resident files are, if the user wants them. */
  def residentPlace: Option[ResidentPlace] =
    if (resident || residentFolder.isDefined) Some(ResidentPlace(residentFolder)) else None

  /** The option that asks for them. */
  private[supply] def residentOption: String =
    if (resident) "--resident" else "--resident-folder"

  private[supply] def check(): Unit = {
    def atLeastOne(name: String, value: Int): Unit =
      if (value < 1) throw new ConfigException(s"--$name is $value: it must be at least 1")
    atLeastOne("ranks", ranks)
    atLeastOne("epochs", epochs)
    blockElements.foreach(atLeastOne("block-elements", _))
    if (residentPlace.isDefined) checkRepeats(residentOption)
    checkResidentFile()
    checkExchange()
    globalBatch.foreach(checkGlobal)
    Deadline.require("--timeout", timeout)
    rankTimeout.foreach(Deadline.require("--rank-timeout", _))
    Deadline.require("--reconnect-timeout", reconnectTimeout)
    serve.foreach(checkServed)
  }

  private def checkServed(text: String): Unit = {
    if (served.isEmpty) throw new ConfigException(
      s"--serve is '$text': it must be RUN or RUN/DATA, each 1 to 64 of the characters A-Z a-z 0-9 _ -")
    Seq("--mapped-files" -> (mappedFiles != null), "--named-pipes" -> (namedPipes != null),
      "--hosts" -> hosts.isDefined, "--share" -> (share != Sharing.Off),
      residentOption -> residentPlace.isDefined, "--keep" -> keep.isDefined).find(_._2).foreach {
      case (option, _) => throw new ConfigException(
          s"$option is for ranks on the nodes of Spark's executors, and with --serve they are anywhere: use one of the two")
    }
  }

  /** A new rank cannot join the communicator of the others. */
  private def checkExchange(): Unit = shuffle match {
    case Shuffle.All(_) if waitForRank =>
      throw new ConfigException(
        "--wait-for-rank is not for --shuffle all: if a rank ends, the ranks that exchange elements with it fail, too; " +
          "use one of the two")
    case _ =>
  }

  private def checkGlobal(batch: Int): Unit = {
    val other =
      if (shuffle.isInstanceOf[Shuffle.All]) Some("--shuffle all")
      else if (uneven != Uneven.Keep) Some("--uneven")
      else residentPlace.map(_ => residentOption)
    other.foreach(option =>
      throw new ConfigException(
        s"--global-batch gives all ranks one order, which $option would change: use one of the two"))
    GlobalOrder(batch, share.rings(ranks))
    ()
  }

  private def checkRepeats(option: String): Unit = {
    if (uneven != Uneven.Keep)
      throw new ConfigException(
        s"$option repeats the blocks of the first epoch, and --uneven supplies other elements in each: use one of the two")
    shuffle match {
      case Shuffle.Elements(_) =>
        throw new ConfigException(
          s"$option repeats the blocks of the first epoch as they are, so --shuffle must be partitions or none")
      case _ =>
    }
  }

  private def checkResidentFile(): Unit = residentFolder match {
    case None =>
      Seq("--resident-quota" -> residentQuota, "--keep" -> keep).find(_._2.isDefined).foreach {
        case (option, _) => throw new ConfigException(
            s"$option is for the file that --resident-folder names: give both, or neither")
      }
    case Some(folder) =>
      if (resident) throw new ConfigException(
        "--resident keeps the blocks in memory, and --resident-folder in that folder: use one of the two")
      if (!folder.startsWith("/")) throw new ConfigException(
        s"--resident-folder is '$folder': name an absolute path, which is a folder of each node")
  }
}

/**
 * What all tasks of one pinned job have in common. `run` is a random number, not 0; `plan` is the
 * plan's fingerprint; `stream`: None for a run, to its end.
 *
 * @param hosts the place of each group's task
 * @param groups the ranks of each task
 * @param steps blocks of each rank in an epoch, if each must have `blockElements` elements
 * @param rankElements elements of each group in a whole epoch, if known in advance
 * @param kept where the resident file has its name from, if it outlives the run: PLAN-SOURCE of
 *   proto/PROTOCOL.md
 * @param exchange what the ranks exchange
 * @param sourceBytes about what all elements take, if known in advance
 * @param links how the ranks connect, if they do
 * @param beginsWithRest whether the plan begins with the rest of an epoch: the ranks do not know it
 */
private[supply] final case class TaskSettings(
    user: SupplySettings,
    hosts: Hostfile,
    groups: Groups,
    schema: Schema,
    mainColumn: Option[Int],
    run: Long = 0,
    plan: Long = 0,
    steps: Option[Long] = None,
    rankElements: Option[IndexedSeq[Long]] = None,
    beginsWithRest: Boolean = false,
    exchange: Exchange = Exchange.Off,
    kept: Option[String] = None,
    sourceBytes: Option[Long] = None,
    stream: Option[StreamPart] = None,
    links: Option[TaskLinks] = None) {
  /** Whether END_OF_DATA follows. */
  def isEnd: Boolean = stream.forall(_.isEnd)

  /** What a rank of that group gets in a whole epoch, if known in advance. */
  def counts(group: Int): Option[EpochCounts] =
    rankElements.map(elements => EpochCounts(elements(group), steps.getOrElse(0)))

  /** Whether the resident file has a use after that epoch: a later one, or a later run. */
  private[task] def usesFileAfter(epoch: Int): Boolean =
    kept.isDefined || epoch < user.epochs - 1

  /** The resident file of a group of this node, if the user wants one. */
  private[task] def residentFile(group: Int, pair: Pair): Option[PairResidentFile] =
    user.residentPlace.map { place =>
      val path = place.of(pair.paths)
      val quota = user.residentQuota.map(_ / hosts.ranksOn(PinnedTask.host).size)
      new PairResidentFile(pair, schema,
        ResidentFileNames(path, pair.paths,
          kept.map(name =>
            s"$name.${groups.first(group)}.kept")), run,
        new ResidentSpace(pair.name, path, quota, bytes(group)))
    }

  /** About what the elements of a group take, by its share of them. */
  private def bytes(group: Int): Option[Long] =
    for (all <- sourceBytes; elements <- rankElements if elements.sum > 0)
      yield (all * (elements(group).toDouble / elements.sum)).toLong

  /** Elements after which a block is closed. */
  def blockElements: Int = user.blockElements.getOrElse(
    if (schema.hasViews) TaskSettings.InPlace else Int.MaxValue)
}

private[supply] object TaskSettings {
  /**
   * Elements of a block of values in place. It would have room for more, but the rank could not
   * begin before the task has walked over all of them.
   */
  private final val InPlace = 4096
}
