package supply.driver

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import supply.core.ConfigException
import supply.data.Source

/** Names the resident files that outlive a run: PLAN-SOURCE of proto/PROTOCOL.md. */
private[supply] object KeptName {
  /**
   * `plan`: its fingerprint; `name`: what the user calls the data, or empty. Throws a
   * ConfigException if nothing identifies the data.
   */
  def apply(plan: Long, source: Source, blockElements: Int, name: String): String = {
    if (Seq("true", "false").contains(name)) throw new ConfigException(
      s"keep=$name does not say which data it is: give it a name, as keep=digits-2026-11, or leave it out")
    if (name.isEmpty && source.identity.isEmpty) throw new ConfigException(
      "this data has no path by which a later run knows it again: name it, as keep=digits-2026-11")
    val parts = Seq(name, source.identity.getOrElse(""), source.schema.columns.mkString("\n"),
      blockElements.toString)
    f"$plan%016x-${hash(parts)}%016x"
  }

  /** The first 64 bits of SHA-256. */
  private def hash(parts: Seq[String]): Long = {
    val sha = MessageDigest.getInstance("SHA-256")
    parts.foreach { part =>
      val bytes = part.getBytes(UTF_8)
      sha.update(ByteBuffer.allocate(4).putInt(0, bytes.length))
      sha.update(bytes)
    }
    ByteBuffer.wrap(sha.digest()).getLong
  }
}
