package supply.pair

import java.io.IOException
import java.nio.channels.ClosedByInterruptException
import java.nio.file.{NoSuchFileException, Paths}

import scala.collection.mutable.ArrayBuffer

import supply.core.{ContractException, Deadline, FailPoint, PairException, PairHeldException, RankException, SupplyException}
import supply.protocol.{Layout, Notification}

/** Attaches a task to the pair of its rank: A1 to A5 of proto/PROTOCOL.md. */
private[pair] final class Attachment(
    name: String, paths: PairPaths, attempt: Int, timeout: Double, run: Long,
    attemptTimeout: Double) {
  import Attachment._

  private val path = Paths.get(paths.mappedFile)
  private val absent = new Deadline(timeout)
  private val held = new Deadline(attemptTimeout)

  /** The task of a run that has just ended may take a moment to leave. */
  private val heldByRun = new Deadline(math.min(attemptTimeout, leavingSeconds))

  private val noRank = Obstacle(
    s"no rank has opened it: is mpirun running on this node, with the same mapped-files.conf (${paths.configLine})?",
    absent)

  /** Tries until the deadline of its last obstacle. */
  def await(): Pair = {
    var last: Either[Obstacle, Pair] = Left(noRank)
    new Deadline(math.max(timeout, attemptTimeout)).poll(pollMillis) {
      last = OpenPairs.attach(path)(closingUnlessAttached(tryAttach))
        .getOrElse(Left(heldBy(OpenPairs.holder(path), " in this executor")))
      val limit = last.fold(_.limit, _ => absent)
      Seq(held, heldByRun).filterNot(_ eq limit).foreach(_.restart())
      last.isRight || limit.passed
    }
    last.fold(obstacle => throw failure(obstacle), identity)
  }

  private def failure(obstacle: Obstacle): SupplyException =
    if (obstacle.limit eq heldByRun) new PairHeldException(s"$name: ${obstacle.text}")
    else if (obstacle.limit eq held) new PairHeldException(
      f"$name: ${obstacle.text}%s (waited $attemptTimeout%.0f s; --timeout)", isTimeout = true)
    else new RankException(
      f"$name: ${obstacle.text}%s (waited $timeout%.0f s; --timeout or --rank-timeout)",
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
    if (file.version >>> 16 != Layout.Constant.VERSION_MAJOR) refuseVersion(file, notifications)
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
private[pair] final case class Holder(run: Long, pid: Int)

private[pair] object Holder {
  def of(file: MappedFile): Holder = Holder(file.run, file.taskPid)
}
