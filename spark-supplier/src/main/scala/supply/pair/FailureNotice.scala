package supply.pair

import java.io.IOException
import java.nio.file.Paths

import scala.util.Using

import supply.core.{FailPoint, Deadline}
import supply.protocol.Notification

/**
 * Tells a rank that Spark has given up, also withMappedFile an attempt that still holds its pair
 * (D1 to D4 of proto/PROTOCOL.md).
 */
object FailureNotice {

  sealed trait Outcome

  /** FAILURE lies in its pipe. */
  case object Told extends Outcome

  /** No rank lives there. */
  case object Absent extends Outcome

  /** One does, and can not be told at this moment. */
  case object NotNow extends Outcome

  /**
   * One does, and is not to be told: it is another run's, or the driver does not want it any more.
   */
  case object NotWanted extends Outcome

  /**
   * Tries once.
   *
   * @param run
   *   number of the run that has failed
   * @param seconds
   *   limit of waiting for room in the notification pipe
   * @param wanted
   *   whether the driver still wants it; asked once the rank is known
   */
  def send(paths: PairPaths, run: Long, text: String, seconds: Double)(
      wanted: => Boolean): Outcome =
    try Pair.withMappedFile(paths) {
        case Some(file) if file.rankLives =>
          FailPoint("D1")
          tell(file, paths, run, text, seconds, wanted)
        case _ => Absent
      }.getOrElse(NotNow)
    catch { case _: PairFile.NotSharedYetException => NotNow }

  /** D2 to D4. */
  private def tell(file: MappedFile, paths: PairPaths, run: Long, text: String, seconds: Double,
      wanted: => Boolean): Outcome =
    if (file.run != run && file.run != 0) NotWanted
    else if (file.run == 0 && !file.lockForTask()) NotNow
    // Another run's task may have come and left before the lock was taken.
    else if ((file.run != run && file.run != 0) || !wanted) NotWanted
    else {
      FailPoint("D2")
      try Using.resource(NamedPipe.openNotifications(Paths.get(paths.notificationPipe),
            paths.group)) { pipe =>
          if (!file.rankLives) Absent
          else {
            FailPoint("D3")
            file.taskFailure = text
            val written = pipe.write(Notification.failure(file.generation), new Deadline(seconds))
            FailPoint("D4")
            if (written) Told else NotNow
          }
        }
      catch {
        case e: java.nio.channels.ClosedByInterruptException => throw e
        case _: IOException => Absent
      }
    }
}
