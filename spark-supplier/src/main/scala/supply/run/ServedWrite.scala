package supply.run

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.HexFormat

import org.apache.spark.SparkContext

import supply.core.ConfigException
import supply.net.Listener
import supply.task.{SupplySettings, TaskLinks}

/** A write, from its beginning to its end, whose ranks connect. */
private[supply] final class ServedWrite(run: HubRun, val ranks: ServedRanks, val links: TaskLinks)
    extends AutoCloseable {
  run.ranks(links.served.data) = ranks

  /** Tells the ranks why they get nothing more, and waits a moment for those that are there. */
  def fail(text: String): Unit = {
    ranks.fail(text)
    ranks.awaitTold(WaitingRanks.deliverySeconds)
  }

  override def close(): Unit = {
    ranks.end()
    run.endWrite()
  }
}

private[supply] object ServedWrite {
  private final val PortSetting = "spark.supply.link.port"

  /**
   * If the ranks of these settings connect, lets them. `seconds`: how long another write may still have
   * their name.
   */
  def begin(sc: SparkContext, settings: SupplySettings, seconds: Double): Option[ServedWrite] =
    settings.served.map { served =>
      val ports = Hubs.portsOf(sc, PortSetting)
      val ranks = ServedRanks.begin(sc, served, settings.ranks, seconds)
      try {
        val text = settings.serveSecret.orElse(sys.env.get("SUPPLY_KEY"))
        val made = HexFormat.of().formatHex(Listener.random())
        val (run, isNew) = Hubs.serving(sc, served.run, text.map(keyOf), keyOf(made))
        val address = s"${Hubs.address(sc)}/$served"
        if (isNew && !settings.isQuiet)
          System.err.println(
            s"ranks connect by SUPPLY_CONNECT=$address${if (text.isEmpty) s" SUPPLY_KEY=$made"
              else ""}")
        new ServedWrite(run, ranks,
          TaskLinks(served, run.public.get._2, address.startsWith("supplys:"), ports, address,
            sc.isLocal, settings.reconnectTimeout))
      } catch { case e: Throwable => ranks.end(); throw e }
    }

  /** The key of a text that both sides have. */
  def keyOf(text: String): Array[Byte] =
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))

  /** Refuses what needs ranks on the nodes of executors. */
  def requireCopies(hasViews: Boolean): Unit = if (hasViews) throw new ConfigException(
    "values in place (--in-place, inPlace) are read from files of the executors' nodes, and with --serve ranks are anywhere: use one of the two")
}
