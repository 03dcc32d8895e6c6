package supply.pair

import java.io.IOException
import java.nio.channels.ClosedByInterruptException
import java.nio.file.{NoSuchFileException, Path, Paths}

import scala.collection.mutable.ArrayBuffer

import supply.core.{ConfigException, ContractException, Deadline, FailPoint, JvmState, PairException, PairHeldException, RankException, SupplyException}
import supply.protocol.{EpochCounts, Exchange, Layout, Notification, Schema}

/** The pair of a rank, and how messages call it. */
private[supply] final case class NamedPaths(rank: String, paths: PairPaths) {
  val path: Path = Paths.get(paths.mappedFile)
  def name: String = s"$rank (${paths.mappedFile})"
}

/** Attaches a task to the pairs of all ranks that read its ring: A1 to A5 of proto/PROTOCOL.md. */
private[supply] final class Attachment(
    readers: IndexedSeq[NamedPaths], attempt: Int, timeout: Double, run: Long,
    attemptTimeout: Double, isExpected: () => Boolean) {
  import Attachment._

  private val absent = new Deadline(timeout)
  private val held = new Deadline(attemptTimeout)

  /** The task of a run that has just ended may take a moment to leave. */
  private val heldByRun = new Deadline(math.min(attemptTimeout, leavingSeconds))

  private def noRank(reader: NamedPaths) = Obstacle(reader,
    s"no rank has opened it: is mpirun running on this node, with the same mapped-files.conf (${reader.paths.configLine})?",
    absent)

  /** Tries until the deadline of its last obstacle, or until no rank is expected. */
  def await(): Pair = {
    var last: Either[Obstacle, Pair] = Left(noRank(readers.head))
    new Deadline(math.max(timeout, attemptTimeout)).poll(pollMillis) {
      last = OpenPairs.attach(readers.map(_.path))(closingUnlessAttached(tryAttach)).fold(
        taken => {
          val reader = readers.find(_.path == taken).get
          Left(heldBy(reader, OpenPairs.holder(taken), " in this executor"))
        },
        identity)
      val limit = last.fold(_.limit, _ => absent)
      Seq(held, heldByRun).filterNot(_ eq limit).foreach(_.restart())
      last.isRight || limit.passed || !isExpected()
    }
    last.fold(obstacle => throw failure(obstacle), identity)
  }

  private def failure(obstacle: Obstacle): SupplyException =
    if (obstacle.limit eq heldByRun)
      new PairHeldException(s"${obstacle.reader.name}: ${obstacle.text}")
    else if (obstacle.limit eq held) new PairHeldException(
      f"${obstacle.reader.name}: ${obstacle.text}%s (waited $attemptTimeout%.0f s; --timeout)",
      isTimeout = true)
    else new RankException(
      f"${obstacle.reader.name}: ${obstacle.text}%s (waited $timeout%.0f s; --rank-timeout)",
      isTimeout = true)

  private def heldBy(
      reader: NamedPaths, holder: Option[Holder], where: String = ""): Obstacle = holder match {
    case Some(Holder(other, pid)) if other != 0 && run != 0 && other != run =>
      Obstacle(reader,
        f"another run (number $other%016x, process $pid%d) supplies its rank, and this one (number $run%016x) has the same " +
          s"mapped-files.conf (${reader.paths.configLine}): wait for the end of the other, or give each run files of its own",
        heldByRun)
    case _ => Obstacle(reader, s"another attempt of the same task still holds it$where", held)
  }

  /** Gives `attach` a list of what must be closed if no pair comes of it. */
  private def closingUnlessAttached(
      attach: ArrayBuffer[AutoCloseable] => Either[Obstacle, Pair]): Either[Obstacle, Pair] = {
    val opened = ArrayBuffer.empty[AutoCloseable]
    var attached = false
    try {
      val outcome = attach(opened)
      attached = outcome.isRight
      outcome
    } finally if (!attached) opened.reverseIterator.foreach(_.close())
  }

  private def tryAttach(opened: ArrayBuffer[AutoCloseable]): Either[Obstacle, Pair] =
    for {
      files <- each(readers)(open(_, opened))
      pair <- MappedFile.whileWhole(files.map(_._2))(tryAttach(files, opened))
    } yield pair

  /** The steps after A1, with the files of all readers. */
  private def tryAttach(files: IndexedSeq[(NamedPaths, MappedFile)],
      opened: ArrayBuffer[AutoCloseable]): Either[Obstacle, Pair] =
    for {
      _ <- each(files) { case (reader, file) => requireLife(reader, file) }
      _ <- requireGroup(files)
      _ <- each(files) { case (reader, file) => lock(reader, file) }
      ends <- each(files) { case (reader, file) => openPipes(reader, file, opened) }
    } yield attach(ends)

  /** What `step` makes of each, or the first obstacle. */
  private def each[A, B](all: IndexedSeq[A])(
      step: A => Either[Obstacle, B]): Either[Obstacle, IndexedSeq[B]] =
    all.foldLeft[Either[Obstacle, IndexedSeq[B]]](Right(IndexedSeq.empty))((done, one) =>
      done.flatMap(made => step(one).map(made :+ _)))

  /** A1. */
  private def open(reader: NamedPaths, opened: ArrayBuffer[AutoCloseable])
      : Either[Obstacle, (NamedPaths, MappedFile)] =
    try MappedFile.open(reader.path, reader.paths.group) match {
        case None => Left(noRank(reader))
        case Some(file) =>
          opened += file
          Right(reader -> file)
      }
    catch { case e: PairFile.NotSharedYetException => Left(Obstacle(reader, e.getMessage, absent)) }

  /** A2. */
  private def requireLife(reader: NamedPaths, file: MappedFile): Either[Obstacle, Unit] = {
    FailPoint("A1")
    if (file.rankLives) {
      FailPoint("A2")
      Right(())
    } else Left(Obstacle(reader,
        "its files are there, but their rank is dead, and no new rank has opened it", absent))
  }

  /** That the ranks read one ring, and it is that of these ranks. Of another version, A5 says so. */
  private def requireGroup(
      files: IndexedSeq[(NamedPaths, MappedFile)]): Either[Obstacle, Unit] = {
    val number = if (readers.size == 1) 0 else readers.size
    val isReadable = files.forall(_._2.version == Layout.version)
    files.zipWithIndex.collectFirst {
      case ((reader, file), index)
          if isReadable && (file.readers != number || file.reader != index) =>
        throw new ConfigException(
          s"${reader.name}: its rank is ${text(file.reader,
              file.readers)}, and Spark supplies it as ${text(index, number)}: " +
            "give both sides the same share (--share, SUPPLY_SHARE)")
      // One of them has died, and a new one may have come: a reader can only follow.
      case ((reader, file), _) if isReadable && file.generation != files.head._2.generation =>
        Obstacle(reader,
          s"it reads the ring of a dead rank, and ${readers.head.name} has a new one", absent)
    }.toLeft(())
  }

  private def text(reader: Int, readers: Int): String =
    if (readers == 0) "the only reader of its ring" else s"reader $reader of $readers of one ring"

  /** A3. */
  private def lock(reader: NamedPaths, file: MappedFile): Either[Obstacle, Unit] =
    if (!file.lockForTask()) Left(heldBy(reader, Some(Holder.of(file))))
    else {
      file.run = run
      FailPoint("A3")
      Right(())
    }

  /** A4. */
  private def openPipes(reader: NamedPaths, file: MappedFile,
      opened: ArrayBuffer[AutoCloseable]): Either[Obstacle, ReaderFiles] = {
    import reader.paths
    try {
      val requests = NamedPipe.openRequests(Paths.get(paths.requestPipe), paths.group)
      opened += requests
      val notifications = NamedPipe.openNotifications(Paths.get(paths.notificationPipe),
        paths.group)
      opened += notifications
      if (file.rankLives) Right(ReaderFiles(reader.name, file, requests, notifications))
      else Left(Obstacle(reader, "its rank died while the task attached", absent))
    } catch {
      case _: NoSuchFileException if !file.rankLives => Left(noRank(reader))
      case e: IOException if !e.isInstanceOf[ClosedByInterruptException] =>
        throw new PairException(
          s"${reader.name}: cannot open its pipes ${paths.requestPipe} and ${paths.notificationPipe}: $e. " +
            "Do both sides use the same named-pipes.conf?", e)
    }
  }

  /** A5. */
  private def attach(ends: IndexedSeq[ReaderFiles]): Pair = {
    FailPoint("A4")
    ends.find(_.file.version != Layout.version).foreach(refuseVersion)
    ends.foreach(_.file.check())
    ends.find(_.file.asked != ends.head.file.asked).foreach(refuseOther(_, ends.head))
    Attachment.pair(readers.head.paths, ends, attempt, timeout)
  }

  private def refuseOther(end: ReaderFiles, first: ReaderFiles): Nothing =
    throw new ConfigException(
      s"${end.name}: its rank wants to begin at another place than ${first.name}, or only one of them exchanges elements: ranks " +
        "that read one ring begin at one position, and do the same with it")

  private def refuseVersion(end: ReaderFiles): Nothing = {
    import end.{file, notifications}
    val text = Attachment.otherVersion(end.name, file.version)
    file.taskFailure = text
    // The versions are the cause, even if the rank cannot be notified any more.
    try notifications.write(Notification.failure(file.generation), new Deadline(timeout))
    catch { case e: IOException if !e.isInstanceOf[ClosedByInterruptException] => () }
    throw new ContractException(text)
  }
}

private object Attachment {
  private val pollMillis = 20L

  private val leavingSeconds = 2.0

  /** The last step. */
  def pair(paths: PairPaths, ends: IndexedSeq[ReaderFiles], attempt: Int,
      timeout: Double): Pair = {
    ends.foreach(_.file.setTask(ProcessHandle.current().pid().toInt, MappedFile.pidNamespace,
        attempt))
    val pair = new Pair(paths, ends, timeout)
    pair.resume()
    FailPoint("A5")
    pair
  }

  def otherVersion(name: String, version: Int): String =
    s"$name: the rank's libsupply speaks contract ${Layout.versionText(version)}, the Supplier " +
      s"${Layout.versionText(Layout.version)}: build both from the same release"

  /** What prevents attaching, and how long it may. */
  private final case class Obstacle(reader: NamedPaths, text: String, limit: Deadline)
}

/** Whose task holds a pair: the number of its run, and its process. */
private[supply] final case class Holder(run: Long, pid: Int)

private[supply] object Holder {
  def of(file: MappedFile): Holder = Holder(file.run, file.taskPid)
}

/** What a task checks and tells its rank before the first block: A6 of proto/PROTOCOL.md. */
private[supply] trait PairTerms {
  def name: String

  /** Of each reader; all get the same. */
  private[supply] def files: IndexedSeq[MappedFile]
  private def file: MappedFile = files.head

  /** Whether no attempt has published anything. */
  def isUntouched: Boolean

  /** Tells the rank which columns its blocks have. (A6) */
  def writeOrCheckSchema(schema: Schema): Unit = {
    files.foreach(_.writeOrCheckSchema(schema))
    FailPoint("A6")
  }

  /** Tells the rank what it must exchange with the others; comes before the schema. (A6) */
  def writeOrCheckExchange(exchange: Exchange): Unit = {
    if (exchange != Exchange.Off && !file.acceptsExchange)
      throw new ConfigException(
        s"$name: its rank's program does not exchange elements (--shuffle all): open its pair with options.exchange and " +
          "supply_exchange_open() (Python: exchange='supplied'), or supply without --shuffle all")
    files.foreach(_.writeOrCheckExchange(exchange))
  }

  /** Tells the rank its plan; refuses a position that it saved under another plan. (A6) */
  def bindPlan(fingerprint: Long): Unit = {
    if (file.startPlan != 0 && file.startPlan != fingerprint)
      throw new ConfigException(
        s"$name: the rank wants to resume at a position that it saved in a run with other data or " +
          s"${PairTerms.PlanOptions}: give the same ones, or start the rank without the position")
    if (!isUntouched && file.plan != fingerprint)
      throw new ConfigException(
        s"$name: another run has begun to supply this rank, with other data or " +
          s"${PairTerms.PlanOptions}: start the rank anew")
    plan = fingerprint
  }

  /** Removes the counts of a run that has published nothing. (A6) */
  def forgetCounts(): Unit = if (isUntouched) files.foreach(_.forgetCounts())

  /** Tells the rank what each of its whole epochs has. */
  def announceCounts(counts: EpochCounts): Unit = files.foreach(_.setCounts(counts))

  /** Whether the rank has asked for what follows the first END_OF_EPOCH of this pair. */
  def hasPassedAnEpoch: Boolean = files.forall(_.acknowledged > 0)

  /** The plan of the published blocks, or else of the rank's position; 0: neither has one. */
  def plan: Long = if (isUntouched) file.startPlan else file.plan

  def plan_=(fingerprint: Long): Unit = files.foreach(_.plan = fingerprint)
}

private object PairTerms {
  /** The options that a plan follows from, apart from the data. */
  private val PlanOptions =
    "--partitions, --ranks, --seed, --shuffle (with --exchange-fraction), --uneven (with --block-elements) or --resume-positions"
}

/**
 * The mapped files that this JVM has open, and their pairs. Nothing else here may open them: when
 * any channel of a file is closed, the JVM drops all its locks on the file. A pair of another class
 * loader is none that can be used here, as if its task were just leaving.
 */
private[supply] object OpenPairs {
  private val pairs = JvmState.map[Path, Option[Any]]("pairs")

  private def pairOf(opened: Option[Any]): Option[Pair] = opened.collect { case pair: Pair => pair }

  /**
   * Runs `open`. Left: this file is open already, and `open` was not run. Otherwise what it
   * returned: the obstacle that it found, or the pair, which is attached.
   */
  def attach[A](paths: Seq[Path])(open: => Either[A, Pair]): Either[Path, Either[A, Pair]] = {
    val taken = paths.takeWhile(pairs.putIfAbsent(_, None) == null)
    var pair = Option.empty[Pair]
    try
      if (taken.size < paths.size) Left(paths(taken.size))
      else {
        val outcome = open
        pair = outcome.toOption
        Right(outcome)
      }
    finally taken.foreach(path => if (pair.isDefined) pairs.put(path, pair) else remove(path))
  }

  /** Runs `open` with the file locked, or `use` with its pair. None: a task attaches or leaves. */
  def attached[A](path: Path)(open: => A)(use: Pair => Option[A]): Option[A] =
    pairs.putIfAbsent(path, None) match {
      case null =>
        try Some(open)
        finally remove(path)
      case attached => pairOf(attached).flatMap(use)
    }

  /** Whose task holds a file in this JVM; None: it attaches or leaves. */
  def holder(path: Path): Option[Holder] =
    Option(pairs.get(path)).flatMap(pairOf).flatMap(_.withMappedFile(path)(Holder.of))

  def remove(path: Path): Unit = { pairs.remove(path); () }
}
