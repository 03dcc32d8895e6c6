package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, Paths, StandardCopyOption}
import java.nio.file.attribute.PosixFilePermissions

import scala.util.control.NonFatal

import supply.core.ContractException
import supply.protocol.{Layout, Text}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}

/**
 * The results of a rank elsewhere, one at a time, which this node keeps under the names that a rank of this
 * node would give them. Until a file is sealed, its magic is missing: then no reader looks for a lock
 * (X2), which this process could not tell from its own. For who has its lock.
 */
private[pair] final class LinkResults(pair: PairPaths, kept: String => Unit) extends AutoCloseable {
  private var current = Option.empty[ReceivedResult]
  private var problem = ""

  /** LINK_RESULT. */
  def begin(name: String): Unit = {
    if (!PairPaths.isResultName(name))
      throw new ContractException(s"'$name' is no name of a result")
    close()
    problem = ""
    trying {
      current = Some(new ReceivedResult(name, Paths.get(pair.resultFile(None, name))))
    }
  }

  /** LINK_RESULT_BYTES. */
  def add(bytes: Array[Byte]): Unit = trying(current.foreach(_.add(bytes)))

  /** LINK_RESULT_SEAL and, with a reason, LINK_RESULT_ABORT. Returns why the result is not kept, or nothing. */
  def end(reason: Option[String]): String = {
    if (current.isEmpty && problem.isEmpty) problem = "no result has begun"
    trying(current.foreach { result =>
      reason.fold(result.seal())(result.abort)
      // The file stays.
      current = None
      kept(result.name)
    })
    val answer = problem
    problem = ""
    answer
  }

  private def trying(body: => Unit): Unit =
    try body
    catch {
      case NonFatal(e) =>
        problem = s"Spark's executor cannot keep it: $e"
        close()
    }

  /** Removes a file that is not whole. The rank sends it again. */
  override def close(): Unit = synchronized {
    current.foreach(_.remove())
    current = None
  }
}

/** A file that comes in pieces. It replaces an earlier one of its name. */
private final class ReceivedResult(val name: String, path: Path) {
  private val unsealed = Paths.get(s"$path.unsealed")
  private val channel: FileChannel = {
    Files.createDirectories(path.getParent,
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")))
    Seq(unsealed, path).foreach(Files.deleteIfExists)
    PairFile.create(unsealed, None)
  }

  def add(bytes: Array[Byte]): Unit = {
    val at = channel.size()
    if (at == 0) bytes.indices.take(Layout.BlockFileMagic.length).foreach(bytes(_) = 0)
    put(ByteBuffer.wrap(bytes), at)
  }

  private def put(bytes: ByteBuffer, at: Long): Unit =
    while (bytes.hasRemaining) channel.write(bytes, at + bytes.position())

  private def putMagic(): Unit = put(ByteBuffer.wrap(Layout.BlockFileMagic), 0)

  def seal(): Unit = {
    putMagic()
    channel.close()
    Files.move(unsealed, path, StandardCopyOption.ATOMIC_MOVE)
    ()
  }

  /** As a rank leaves it: W5. */
  def abort(reason: String): Unit = {
    val fields = ByteBuffer.allocate(At.SIZE).order(ByteOrder.LITTLE_ENDIAN)
    fields.putInt(At.version, Layout.version).putInt(At.byteOrder, Constant.BYTE_ORDER_MARK)
    fields.putInt(At.`sealed`, Constant.SEALED_ABORTED)
    Text.write(fields, At.rankFailure, Layout.FailureTextBytes, reason)
    put(fields, 0)
    putMagic()
    channel.close()
  }

  def remove(): Unit = {
    channel.close()
    Files.deleteIfExists(unsealed)
    ()
  }
}
