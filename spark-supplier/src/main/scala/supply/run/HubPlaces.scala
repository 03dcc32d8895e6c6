package supply.run

import java.nio.charset.StandardCharsets.UTF_8

import supply.net.Connection

/** A connection of a rank elsewhere that asks where its task waits: docs/design/hub.md has its bytes. */
private[run] object HubPlaces {
  private final val SignSeconds = 10.0
  private final val PauseMillis = 50L
  private final val MostText = 2000

  def serve(connection: Connection, run: HubRun): Unit = {
    import connection.{in, out, readBytes}
    def text() = new String(readBytes(in.readUnsignedShort()), UTF_8)
    val (rank, ranks) = (in.readInt(), in.readInt())
    val (data, _) = (text(), text())
    var status = ServedRanks.Waits
    while (status == ServedRanks.Waits && !run.isClosed) {
      val asked = new supply.core.Deadline(SignSeconds).find(PauseMillis)(run.ranks.get(data))
      val (found, answer) = asked.fold(ServedRanks.Waits -> "")(_.answer(rank, ranks, SignSeconds))
      val bytes = answer.take(MostText).getBytes(UTF_8)
      out.writeByte(found)
      out.writeShort(bytes.length)
      out.write(bytes)
      out.flush()
      if (found == ServedRanks.Failed) asked.foreach(_.told(rank))
      status = found
    }
  }
}
