package supply.pair

import java.io.IOException
import java.nio.channels.ClosedByInterruptException
import java.nio.file.Paths

import scala.util.Using

import supply.core.{Deadline, FailPoint, SupplyException}
import supply.protocol.Notification

/** Sends FAILURE to ranks, also while a task holds a pair (D1 to D4 of proto/PROTOCOL.md). */
private[supply] object FailureSender {
  sealed trait Outcome

  /** FAILURE is in its pipe. */
  case object Sent extends Outcome

  /** No rank lives there. */
  case object Absent extends Outcome

  /** A rank lives there, and cannot be notified at this moment. */
  case object Busy extends Outcome

  /** A rank of another run lives there, or the driver stopped waiting: it must not be notified. */
  case object Unwanted extends Outcome

  /** Its pair cannot be used. */
  final case class Refused(cause: SupplyException) extends Outcome

  /**
   * Tries each pair once, for at most `seconds` if its notification pipe is full. If a rank lives
   * in one of them, asks once by `isWanted` whether the driver still waits for ranks (None: it has
   * not answered in time). That may take long, so nothing is held meanwhile.
   */
  def send(pairs: Seq[PairPaths], run: Long, text: String, seconds: Double)(
      isWanted: => Option[Boolean]): Seq[Outcome] = {
    val found = pairs.map(paths => paths -> generation(paths, run))
    lazy val wanted = isWanted
    found.map {
      case (_, Left(outcome)) => outcome
      case (paths, Right(generation)) => wanted match {
          case Some(true) => sendTo(paths, generation, run, text, seconds)
          case Some(false) => Unwanted
          case None => Busy
        }
    }
  }

  /** D1: the generation of the living rank. */
  private def generation(paths: PairPaths, run: Long): Either[Outcome, Long] =
    withLivingRank(paths) { file =>
      FailPoint("D1")
      if (isOf(file, run)) Right(file.generation) else Left(Unwanted)
    }

  private def sendTo(
      paths: PairPaths, generation: Long, run: Long, text: String, seconds: Double): Outcome =
    withLivingRank(paths) { file =>
      // A new rank, which the driver's answer does not cover.
      if (file.generation != generation) Left(Busy)
      else Right(write(file, paths, run, text, seconds))
    }.merge

  private def withLivingRank[A](paths: PairPaths)(
      body: MappedFile => Either[Outcome, A]): Either[Outcome, A] =
    try Pair.withMappedFile(paths, isOfFailure = true) {
        case Some(file) if file.rankLives => body(file)
        case _ => Left(Absent)
      }.getOrElse(Left(Busy))
    catch {
      case _: PairFile.NotSharedYetException => Left(Busy)
      case e: SupplyException => Left(Refused(e))
    }

  /** Whether a pair belongs to that run, or to none yet. */
  private def isOf(file: MappedFile, run: Long): Boolean = file.run == run || file.run == 0

  /** D2 to D4. */
  private def write(
      file: MappedFile, paths: PairPaths, run: Long, text: String, seconds: Double): Outcome =
    if (file.run == 0 && !file.lockForTask()) Busy
    // The task of another run may have attached since D1.
    else if (!isOf(file, run)) Unwanted
    else {
      FailPoint("D2")
      try Using.resource(NamedPipe.openNotifications(Paths.get(paths.notificationPipe),
            paths.group, isOfFailure = true)) { pipe =>
          if (!file.rankLives) Absent
          else {
            FailPoint("D3")
            file.taskFailure = text
            val isWritten = pipe.write(Notification.failure(file.generation), new Deadline(seconds))
            FailPoint("D4")
            if (isWritten) Sent else Busy
          }
        }
      catch {
        case e: ClosedByInterruptException => throw e
        case _: IOException => if (file.rankLives) Busy else Absent
      }
    }
}
