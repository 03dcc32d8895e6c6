package supply.pair

import java.io.IOException
import java.nio.channels.ClosedByInterruptException
import java.nio.file.{NoSuchFileException, Path, Paths}

import scala.collection.mutable.ArrayBuffer

import supply.core.{ConfigException, ContractException, Deadline, FailPoint, JvmState, PairException, PairHeldException, RankException, SupplyException}
import supply.protocol.{EpochCounts, Exchange, Layout, Notification, Schema}

/** Attaches a task to the pair of its rank: A1 to A5 of proto/PROTOCOL.md. */
private[supply] final class Attachment(
    name: String, paths: PairPaths, attempt: Int, timeout: Double, run: Long,
    attemptTimeout: Double, isExpected: () => Boolean) {
  import Attachment._

  private val path = Paths.get(paths.mappedFile)
  private val absent = new Deadline(timeout)
  private val held = new Deadline(attemptTimeout)

  /** The task of a run that has just ended may take a moment to leave. */
  private val heldByRun = new Deadline(math.min(attemptTimeout, leavingSeconds))

  private val noRank = Obstacle(
    s"no rank has opened it: is mpirun running on this node, with the same mapped-files.conf (${paths.configLine})?",
    absent)

  /** Tries until the deadline of its last obstacle, or until no rank is expected. */
  def await(): Pair = {
    var last: Either[Obstacle, Pair] = Left(noRank)
    new Deadline(math.max(timeout, attemptTimeout)).poll(pollMillis) {
      last = OpenPairs.attach(path)(closingUnlessAttached(tryAttach))
        .getOrElse(Left(heldBy(OpenPairs.holder(path), " in this executor")))
      val limit = last.fold(_.limit, _ => absent)
      Seq(held, heldByRun).filterNot(_ eq limit).foreach(_.restart())
      last.isRight || limit.passed || !isExpected()
    }
    last.fold(obstacle => throw failure(obstacle), identity)
  }

  private def failure(obstacle: Obstacle): SupplyException =
    if (obstacle.limit eq heldByRun) new PairHeldException(s"$name: ${obstacle.text}")
    else if (obstacle.limit eq held) new PairHeldException(
      f"$name: ${obstacle.text}%s (waited $attemptTimeout%.0f s; --timeout)", isTimeout = true)
    else new RankException(
      f"$name: ${obstacle.text}%s (waited $timeout%.0f s; --rank-timeout)",
      isTimeout = true)

  private def heldBy(holder: Option[Holder], where: String = ""): Obstacle = holder match {
    case Some(Holder(other, pid)) if other != 0 && run != 0 && other != run =>
      Obstacle(
        f"another run (number $other%016x, process $pid%d) supplies its rank, and this one (number $run%016x) has the same " +
          s"mapped-files.conf (${paths.configLine}): wait for the end of the other, or give each run files of its own",
        heldByRun)
    case _ => Obstacle(s"another attempt of the same task still holds it$where", held)
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
    try MappedFile.open(path, paths.group) match {
        case None => Left(noRank)
        case Some(file) =>
          opened += file
          file.whileWhole {
            for {
              _ <- lock(file)
              pipes <- openPipes(file, opened)
            } yield attach(file, pipes._1, pipes._2)
          }
      }
    catch { case e: PairFile.NotSharedYetException => Left(Obstacle(e.getMessage, absent)) }

  /** A2 and A3. */
  private def lock(file: MappedFile): Either[Obstacle, Unit] = {
    FailPoint("A1")
    if (!file.rankLives)
      Left(Obstacle("its files are there, but their rank is dead, and no new rank has opened it",
          absent))
    else {
      FailPoint("A2")
      if (!file.lockForTask()) Left(heldBy(Some(Holder.of(file))))
      else {
        file.run = run
        FailPoint("A3")
        Right(())
      }
    }
  }

  /** A4. */
  private def openPipes(file: MappedFile,
      opened: ArrayBuffer[AutoCloseable]): Either[Obstacle, (RequestPipe, NotificationPipe)] =
    try {
      val requests = NamedPipe.openRequests(Paths.get(paths.requestPipe), paths.group)
      opened += requests
      val notifications = NamedPipe.openNotifications(Paths.get(paths.notificationPipe),
        paths.group)
      opened += notifications
      if (file.rankLives) Right((requests, notifications))
      else Left(Obstacle("its rank died while the task attached", absent))
    } catch {
      case _: NoSuchFileException if !file.rankLives => Left(noRank)
      case e: IOException if !e.isInstanceOf[ClosedByInterruptException] =>
        throw new PairException(
          s"$name: cannot open its pipes ${paths.requestPipe} and ${paths.notificationPipe}: $e. " +
            "Do both sides use the same named-pipes.conf?", e)
    }

  /** A5. */
  private def attach(
      file: MappedFile, requests: RequestPipe, notifications: NotificationPipe): Pair = {
    FailPoint("A4")
    if (file.version != Layout.version) refuseVersion(file, notifications)
    file.check()
    file.setTask(ProcessHandle.current().pid().toInt, MappedFile.pidNamespace, attempt)
    val pair = new Pair(name, paths, file, requests, notifications, timeout)
    pair.resume()
    FailPoint("A5")
    pair
  }

  private def refuseVersion(file: MappedFile, notifications: NotificationPipe): Nothing = {
    val text =
      s"$name: the rank's libsupply speaks contract ${Layout.versionText(file.version)}, the Supplier " +
        s"${Layout.versionText(Layout.version)}: build both from the same release"
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

  /** What prevents attaching, and how long it may. */
  private final case class Obstacle(text: String, limit: Deadline)
}

/** Whose task holds a pair: the number of its run, and its process. */
private[supply] final case class Holder(run: Long, pid: Int)

private[supply] object Holder {
  def of(file: MappedFile): Holder = Holder(file.run, file.taskPid)
}

/** What a task checks and tells its rank before the first block: A6 of proto/PROTOCOL.md. */
private[supply] trait PairTerms {
  def name: String
  private[supply] def file: MappedFile

  /** Whether no attempt has published anything. */
  def isUntouched: Boolean

  /** Tells the rank which columns its blocks have. (A6) */
  def writeOrCheckSchema(schema: Schema): Unit = {
    file.writeOrCheckSchema(schema)
    FailPoint("A6")
  }

  /** Tells the rank what it must exchange with the others; comes before the schema. (A6) */
  def writeOrCheckExchange(exchange: Exchange): Unit = {
    if (exchange != Exchange.Off && !file.acceptsExchange)
      throw new ConfigException(
        s"$name: its rank's program does not exchange elements (--shuffle all): open its pair with options.exchange and " +
          "supply_exchange_open() (Python: exchange='supplied'), or supply without --shuffle all")
    file.writeOrCheckExchange(exchange)
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
    file.plan = fingerprint
  }

  /** Removes the counts of a run that has published nothing. (A6) */
  def forgetCounts(): Unit = if (isUntouched) file.forgetCounts()

  /** Tells the rank what each of its whole epochs has. */
  def announceCounts(counts: EpochCounts): Unit = file.setCounts(counts)

  /** Whether the rank has asked for what follows the first END_OF_EPOCH of this pair. */
  def hasPassedAnEpoch: Boolean = file.acknowledged > 0

  /** The plan of the published blocks, or else of the rank's position; 0: neither has one. */
  def plan: Long = if (isUntouched) file.startPlan else file.plan

  def plan_=(fingerprint: Long): Unit = file.plan = fingerprint
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
   * Runs `open`. None: the file is open already, and `open` was not run. Left: `open` found an
   * obstacle. Right: the pair is attached.
   */
  def attach[A](path: Path)(open: => Either[A, Pair]): Option[Either[A, Pair]] =
    if (pairs.putIfAbsent(path, None) != null) None
    else {
      var pair = Option.empty[Pair]
      try {
        val outcome = open
        pair = outcome.toOption
        Some(outcome)
      } finally if (pair.isDefined) pairs.put(path, pair) else remove(path)
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
    Option(pairs.get(path)).flatMap(pairOf).flatMap(_.withMappedFile(Holder.of))

  def remove(path: Path): Unit = { pairs.remove(path); () }
}
