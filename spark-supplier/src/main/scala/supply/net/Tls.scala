package supply.net

import java.io.{File, IOException, InputStream}
import java.net.Socket
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.security.{GeneralSecurityException, KeyStore}
import java.util.HexFormat
import java.util.concurrent.TimeUnit.SECONDS
import javax.net.ssl.{KeyManagerFactory, SSLContext, SSLSocket}

import scala.util.Using

import supply.core.ConfigException

/**
 * TLS at a listener, with a key and its certificate. Nobody must sign this: both ends of a connection
 * prove a key, and the proofs cover the certificate.
 */
private[supply] final class Tls(keys: KeyStore, password: Array[Char]) {
  private val sockets = {
    val managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm)
    managers.init(keys, password)
    val context = SSLContext.getInstance("TLS")
    context.init(managers.getKeyManagers, null, null)
    context.getSocketFactory
  }

  /** The listener's end of that connection, which must still shake hands. It does not close the socket. */
  def over(socket: Socket): SSLSocket = {
    val secured = sockets.createSocket(socket, null: InputStream, false).asInstanceOf[SSLSocket]
    val known = secured.getSupportedProtocols.toSet
    secured.setEnabledProtocols(Tls.Protocols.filter(known))
    secured
  }
}

private[supply] object Tls {
  private val Protocols = Array("TLSv1.3", "TLSv1.2")
  private final val KeytoolSeconds = 60L

  /** Of a key store that a user names. */
  def ofFile(file: File, kind: Option[String], password: Option[String],
      keyPassword: Option[String]): Tls =
    try of(file.toPath, kind.getOrElse(KeyStore.getDefaultType), password, keyPassword)
    catch {
      case e @ (_: IOException | _: GeneralSecurityException) =>
        throw new ConfigException(
          s"the key store $file cannot be read ($e): see spark.ssl.rpc.keyStore", e)
    }

  /** With a certificate of this JVM's own, which is made once. */
  lazy val selfSigned: Tls = makeSelfSigned()

  private[supply] def makeSelfSigned(): Tls = {
    val folder = Files.createTempDirectory("supply-hub") // Mode 700.
    val file = folder.resolve("key")
    try {
      val password = HexFormat.of().formatHex(Listener.random())
      makeKey(file, password, new File(System.getProperty("java.home"), "bin/keytool"))
      of(file, "PKCS12", Some(password), None)
    } finally {
      Files.deleteIfExists(file)
      Files.deleteIfExists(folder)
    }
  }

  private def of(file: Path, kind: String, password: Option[String],
      keyPassword: Option[String]): Tls = {
    val keys = KeyStore.getInstance(kind)
    Using.resource(Files.newInputStream(file))(keys.load(_, password.map(_.toCharArray).orNull))
    new Tls(keys, keyPassword.orElse(password).map(_.toCharArray).orNull)
  }

  /** Java has no public call that makes a certificate. */
  private[supply] def makeKey(file: Path, password: String, keytool: File): Unit = {
    def fail(why: String, cause: Throwable = null) = throw new ConfigException(
      s"$keytool makes no key for TLS at the hub ($why): set spark.ssl.rpc.keyStore and its passwords, or spark.supply.hub.tls=false",
      cause)
    val command = new ProcessBuilder(keytool.getPath, "-genkeypair", "-alias", "hub", "-keyalg",
      "EC", "-keysize", "256", "-sigalg", "SHA256withECDSA", "-dname", "CN=spark-supplier hub",
      "-validity", "3650", "-storetype", "PKCS12", "-keystore", file.toString, "-storepass:env",
      "SUPPLY_HUB_PASSWORD", "-keypass:env", "SUPPLY_HUB_PASSWORD")
    command.environment.put("SUPPLY_HUB_PASSWORD", password)
    command.redirectErrorStream(true)
    val running =
      try command.start()
      catch { case e: IOException => fail(e.getMessage, e) }
    try {
      running.getOutputStream.close()
      if (!running.waitFor(KeytoolSeconds, SECONDS)) fail(s"it has not ended in $KeytoolSeconds s")
      if (running.exitValue != 0)
        fail(new String(running.getInputStream.readAllBytes(), UTF_8).trim.replaceAll("\\s+", " "))
    } finally running.destroyForcibly()
  }
}
