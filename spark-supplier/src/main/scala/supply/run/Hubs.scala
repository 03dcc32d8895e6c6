package supply.run

import java.net.{BindException, InetAddress}
import java.security.MessageDigest
import java.util.UUID

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.supply.{DriverEndpoint, RpcSecurity}

import supply.core.ConfigException
import supply.net.{Listener, Tls}

/** The hub of this JVM, for the Python package: docs/design/hub.md. Its lock is taken before the hub's. */
private[supply] object Hubs {
  /** Whether connections use TLS. Not set: if Spark's own are encrypted. */
  private final val TlsSetting = "spark.supply.hub.tls"

  /** Where it listens; if that port is not free, at one of those after it, as Spark does. 0: any. */
  private final val PortSetting = "spark.supply.hub.port"
  private final val MostPort = 65535
  private final val DefaultRetries = 16

  private var current = Option.empty[(SparkContext, Hub)]

  /** Of the last hub, with its application: ranks that come again after a while know that port. */
  private var last = ("", 0)

  /**
   * Opens a run; again, if it is open with that key. Returns, with spaces between them, the host and
   * the port for the run's processes, and the host for a client on this machine. The port ends with
   * "/tls" if they must use TLS.
   */
  def open(sc: SparkContext, run: String, key: Array[Byte]): String = synchronized {
    current.filter(_._1 ne sc).foreach(_._2.close())
    val hub = current.map(_._2).filter(_.open(run, key).isDefined).getOrElse {
      val started = start(sc)
      current = Some(sc -> started)
      started.open(run, key)
      started
    }
    s"${hostOf(sc, hub)} ${hub.port}${if (hub.isTls) "/tls" else ""} ${clientHost(hub)}"
  }

  /** Lets ranks elsewhere know an open run by that name and key. */
  def serve(run: HubRun, name: String, key: Array[Byte]): Unit =
    synchronized(current).foreach(_._2.serve(run, name, key))

  /**
   * The run of that public name, which a write keeps open until it ends, and whether it is new. If it is,
   * it has `key`, or `made`. Throws a ConfigException if it is there with another key than `key`.
   */
  def serving(sc: SparkContext, name: String, key: Option[Array[Byte]],
      made: => Array[Byte]): (HubRun, Boolean) = synchronized {
    val found = current.filter(_._1 eq sc).flatMap(_._2.served(name))
    if (found.exists { case (_, own) => key.exists(!MessageDigest.isEqual(_, own)) })
      throw new ConfigException(
        s"the run $name is served already, with another key (--serve-secret, SUPPLY_KEY)")
    found.map(_._1).filter(_.beginWrite()).map(_ -> false).getOrElse {
      val hidden = s"served-${UUID.randomUUID()}"
      open(sc, hidden, Listener.random())
      val run = find(hidden).get
      run.isOfWrite = true
      try serve(run, name, key.getOrElse(made))
      catch { case e: Throwable => close(hidden); throw e }
      run.beginWrite()
      run -> true
    }
  }

  /** Where ranks elsewhere find the hub, which is open. */
  def address(sc: SparkContext): String = {
    val hub = synchronized(current).get._2
    val host = hostOf(sc, hub)
    s"supply${if (hub.isTls) "s" else ""}://${if (host.contains(':')) s"[$host]" else host}:${hub.port}"
  }

  /** Ends all connections of that run, if it is open. */
  def close(run: String): Unit = synchronized(current).foreach(_._2.close(run))

  /** An open run. */
  def find(run: String): Option[HubRun] = synchronized(current).flatMap(_._2.run(run))

  /** If `body` fails, [[failure]] has the reason while the run is open. */
  def notingFailure[A](run: String, what: String)(body: => A): A =
    try body
    catch {
      case NonFatal(e) =>
        find(run).foreach(_.failures.put(what, e))
        throw e
    }

  /** Why that part of the run has failed; None: it has not, or the run is not open. */
  def failure(run: String, what: String): Option[Throwable] =
    find(run).flatMap(_.failures.get(what))

  /** It ends with Spark. */
  private def start(sc: SparkContext): Hub = {
    var endpoint = Option.empty[DriverEndpoint]
    val bind = bindAddress(sc)
    val allowed = portsOf(sc, PortSetting)
    val ports = if (allowed.head == 0 && last._1 == sc.applicationId) Seq(last._2, 0) else allowed
    val hub =
      try new Hub(bind, tls = tls(sc), ports = ports, ended = () => endpoint.foreach(_.close()))
      catch {
        case e: BindException => throw new ConfigException(
            s"the hub of the driver cannot listen at ${bind.getHostAddress}, " +
              (if (allowed.head == 0)
                 s"the address of spark.driver.bindAddress or spark.driver.host"
               else
                 s"from port ${ports.head} to ${ports.last}: set $PortSetting to a free one, or spark.port.maxRetries higher") +
              s" (${e.getMessage})",
            e)
      }
    try endpoint = Some(new DriverEndpoint(sc, s"supply-hub-${UUID.randomUUID()}",
          () => { hub.close(); forget(hub) })(PartialFunction.empty))
    catch { case e: Throwable => hub.close(); throw e } // Spark is stopping.
    last = sc.applicationId -> hub.port
    hub
  }

  private def forget(hub: Hub): Unit = synchronized { current = current.filter(_._2 ne hub) }

  private[supply] def isEmpty: Boolean = synchronized(current.isEmpty)

  private def tls(sc: SparkContext): Option[Tls] =
    if (!sc.getConf.getBoolean(TlsSetting, RpcSecurity.isEncrypted(sc))) None
    else Some(RpcSecurity.keys(sc).fold(Tls.selfSigned)(keys =>
        Tls.ofFile(keys.file, keys.kind, keys.password, keys.keyPassword)))

  /** The ports that this setting allows. */
  private[run] def portsOf(sc: SparkContext, setting: String): Range = {
    val first = sc.getConf.getInt(setting, 0)
    if (first < 0 || first > MostPort)
      throw new ConfigException(s"$setting is $first, and no port")
    val others = if (first == 0) 0 else sc.getConf.getInt("spark.port.maxRetries", DefaultRetries)
    first to math.min(first + others, MostPort)
  }

  private def bindAddress(sc: SparkContext): InetAddress =
    if (sc.isLocal) InetAddress.getLoopbackAddress
    else InetAddress.getByName(sc.getConf.get("spark.driver.bindAddress", driverHost(sc)))

  private def driverHost(sc: SparkContext) = sc.getConf.get("spark.driver.host")

  /** Spark has an IPv6 address in brackets. */
  private def hostOf(sc: SparkContext, hub: Hub): String =
    if (sc.isLocal) clientHost(hub) else driverHost(sc).stripPrefix("[").stripSuffix("]")

  private def clientHost(hub: Hub): String =
    (if (hub.address.isAnyLocalAddress) InetAddress.getLoopbackAddress
     else hub.address).getHostAddress
}
