package org.apache.spark.supply

import java.io.File
import java.nio.file.Files
import java.security.MessageDigest
import java.util.HexFormat

import org.apache.spark.util.{ChildFirstURLClassLoader, MutableURLClassLoader, Utils}

/**
 * The jar that a client of Spark Connect has brought by addArtifacts. Spark loads it for the session
 * alone, again after each further artifact, and removes the file with the session. But what tasks
 * return is read by threads of all sessions, and the driver has one hub. So the first of these jars
 * becomes one of the driver's, as if the server had started with `--jars`, until the server ends. In
 * executors, each session has its own classes, which share what core/JvmState.scala has.
 *
 * Public API: `SparkContext.addJar` gives a jar to tasks alone.
 */
object ClientJar {
  private final val FolderName = "supply-of-client"
  private final val InJar = "supply/built-for.properties"

  /**
   * `source`, or one of the same class as the driver has it, if a session has brought this one.
   * `canRun`: whether the jar is for this Spark.
   */
  def ofDriver(source: AnyRef, canRun: Boolean): AnyRef = {
    val own = source.getClass
    if (!isArtifact || !canRun) source
    else driverOf(own.getClassLoader).fold(source) { driver =>
      driver.synchronized {
        if (driver.getResource(InJar) == null) add(driver)
      }
      driver.loadClass(own.getName).getConstructor().newInstance().asInstanceOf[AnyRef]
    }
  }

  /** Whether these classes are of one session: its loader is inside the driver's, or hides that. */
  def isArtifact: Boolean =
    driverOf(getClass.getClassLoader).isDefined || isHidden(getClass.getClassLoader)

  /** With spark.executor.userClassPathFirst a session's loader has no parent, but the folder of the session's classes. */
  private[supply] def isHidden(loader: ClassLoader): Boolean = loader match {
    case own: ChildFirstURLClassLoader =>
      own.getURLs.map(_.getPath.stripSuffix("/")).exists(path =>
        path.endsWith("/classes") && path.contains("/artifacts"))
    case _ => false
  }

  /** SHA-256 of the jar, if a client has brought it for the driver: hexadecimal. */
  lazy val digest: Option[String] =
    if (!location.getPath.contains(s"/$FolderName")) None
    else {
      val sha = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(location.toPath))
      Some(HexFormat.of().formatHex(sha))
    }

  private def location =
    new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)

  /** The loader of Spark's own threads: the outermost that takes jars. None: there is none. */
  private def driverOf(session: ClassLoader): Option[MutableURLClassLoader] =
    Iterator.iterate(session.getParent)(_.getParent).takeWhile(_ != null).collect {
      case loader: MutableURLClassLoader => loader
    }.toSeq.lastOption

  private def add(driver: MutableURLClassLoader): Unit = {
    val copy = new File(Utils.createTempDir(namePrefix = FolderName), location.getName)
    Files.copy(location.toPath, copy.toPath)
    driver.addURL(copy.toURI.toURL)
  }
}
