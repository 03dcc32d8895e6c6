package supply.run

import java.io.{DataOutputStream, IOException, InputStream}
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.control.NonFatal

import supply.core.FailureText
import supply.net.Connection

/**
 * A connection of a rank that saves or loads its part of a checkpoint: docs/design/hub.md has its
 * bytes. A failure is `Failed` in front of the pieces, and `Piece.Gone` within them.
 */
private[run] object HubFiles {
  private final val Save = 0
  private final val Load = 1
  private final val Done = 0
  private final val Failed = 1
  private final val PieceBytes = 1 << 20
  private final val MostText = 2000

  /** Serves one file. `folders`: of the run. */
  def serve(connection: Connection, folders: CheckpointFolders): Unit = {
    import connection.{in, out}
    val verb = in.readUnsignedByte()
    val (number, rank) = (in.readLong(), in.readInt())
    try {
      verb match {
        case Save =>
          save(connection, known(folders.to), number, rank)
          out.writeByte(Done)
        case Load =>
          val file = known(folders.from).open(number, rank)
          try {
            out.writeByte(Done)
            load(file, out)
          } finally file.close()
        case other => throw new IOException(s"a call $other")
      }
    } catch {
      case NonFatal(e) =>
        val text = reason(e)
        out.writeByte(Failed)
        out.writeShort(text.length)
        out.write(text)
    }
    out.flush()
    connection.endOutput()
    connection.drain()
  }

  private def known(folder: Option[CheckpointFolder]) =
    folder.getOrElse(throw new IOException("this run has no folder of checkpoints"))

  /** If the connection ends before the last piece, the file has no more than came, and nobody completes it. */
  private def save(connection: Connection, folder: CheckpointFolder, number: Long,
      rank: Int): Unit = {
    val file = folder.create(number, rank)
    var isLast = false
    try {
      while (!isLast) Piece.read(connection.in, 0, Piece.More) { piece =>
        file.write(piece.bytes)
        isLast = piece.flag == Piece.Last
      }
      file.hsync()
    } finally file.close()
  }

  /** If the file cannot be read to its end, the reason comes instead of the last piece. */
  private def load(file: InputStream, out: DataOutputStream): Unit = {
    val bytes = new Array[Byte](PieceBytes)
    var piece = next(file, bytes)
    while (piece.flag == Piece.More) {
      piece.writeToPeer(out)
      piece = next(file, bytes)
    }
    piece.writeToPeer(out)
  }

  private def next(file: InputStream, bytes: Array[Byte]): Piece =
    try file.readNBytes(bytes, 0, bytes.length) match {
        case 0 => Piece(0, Piece.Last, Piece.Empty)
        case count => Piece(0, Piece.More, if (count == bytes.length) bytes else bytes.take(count))
      }
    // Hadoop's local files throw an Error.
    catch { case NonFatal(e) => Piece(0, Piece.Gone, reason(e)) }

  private def reason(e: Throwable): Array[Byte] =
    FailureText.of(e).take(MostText).getBytes(UTF_8)
}
