package supply.executor

import supply.core.{ConfigException, Deadline}
import supply.pair.ConfigFiles
import supply.plan.{Hostfile, Shuffle, Uneven}

/** What a user asks for: RunOptions says what each option means. */
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
    resumePositions: Option[String] = None) {
  def configFiles: ConfigFiles = ConfigFiles(mappedFiles, namedPipes)

  /**
   * The places of the ranks. Throws a ConfigException if the host file is wrong, or, with all ranks
   * on this node, the config files are.
   */
  def readHosts(): Hostfile = {
    if (hosts.isEmpty) configFiles.read(ranks)
    Hostfile(hosts, ranks)
  }

  /** The limit of a wait for a rank that may live, in seconds. */
  def secondsOfRank: Double = rankTimeout.getOrElse(timeout)

  private[supply] def check(): Unit = {
    def atLeastOne(name: String, value: Int): Unit =
      if (value < 1) throw new ConfigException(s"--$name is $value: it must be at least 1")
    atLeastOne("ranks", ranks)
    atLeastOne("epochs", epochs)
    blockElements.foreach(atLeastOne("block-elements", _))
    if (resident) checkRepeats("--resident")
    checkResidentFile()
    checkExchange()
    Deadline.require("--timeout", timeout)
    rankTimeout.foreach(Deadline.require("--rank-timeout", _))
  }

  /** A new rank cannot join the communicator of the others. */
  private def checkExchange(): Unit = shuffle match {
    case Shuffle.All(_) if waitForRank =>
      throw new ConfigException(
        "--wait-for-rank is not for --shuffle all: if a rank ends, the ranks that exchange elements with it fail, too; " +
          "use one of the two")
    case _ =>
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
        "--resident keeps the blocks in the mapped file, and --resident-folder in a file of its own: use one of the two")
      checkRepeats("--resident-folder")
      if (!folder.startsWith("/")) throw new ConfigException(
        s"--resident-folder is '$folder': name an absolute path, which is a folder of each node")
  }
}
