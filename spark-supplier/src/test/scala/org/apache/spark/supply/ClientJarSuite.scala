package org.apache.spark.supply

import java.net.{URL, URLClassLoader}
import java.nio.file.{Files, Path, Paths}

import org.apache.spark.util.{ChildFirstURLClassLoader, MutableURLClassLoader}
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.TemporaryFolder

/** Which jar is one of a session alone. */
class ClientJarSuite extends AnyFunSuite {
  private val packaged = "org/apache/spark/supply"

  /** What the class says of itself, loaded from there. */
  private def isArtifact(folder: Path, parent: ClassLoader): Boolean = {
    val loader = new OfJar(folder.toUri.toURL, parent)
    try {
      val module = loader.loadClass(ClientJar.getClass.getName)
      assert(module.getClassLoader eq loader)
      module.getMethod("isArtifact").invoke(module.getField("MODULE$").get(null)) == true
    } finally loader.close()
  }

  test(
    "a jar is a session's if its loader is inside the driver's, and its folder does not matter") {
    val ours = getClass.getClassLoader
    val driver = new MutableURLClassLoader(Array.empty, ours)
    for (name <- Seq("artifacts/jars", "jars")) TemporaryFolder { folder =>
      val place = folder.resolve(name)
      val classes = Paths.get(ours.getResource(s"$packaged/ClientJar.class").toURI).getParent
      Files.createDirectories(place.resolve(packaged))
      classes.toFile.list().filter(_.startsWith("ClientJar")).foreach(name =>
        Files.copy(classes.resolve(name), place.resolve(packaged).resolve(name)))
      assert(!isArtifact(place, ours))
      assert(isArtifact(place, driver))
    }
  }

  test("a session's loader that hides the driver's has the folder of its classes") {
    def isHidden(loader: String => ClassLoader, path: String) = ClientJar.isHidden(loader(path))
    def childFirst(path: String) =
      new ChildFirstURLClassLoader(Array(new URL(s"file:$path")), getClass.getClassLoader)
    def usual(path: String) =
      new MutableURLClassLoader(Array(new URL(s"file:$path")), getClass.getClassLoader)
    val folders = Seq("/tmp/artifacts/a-session/classes/", "/tmp/artifacts-1/a-session/classes")
    assert(folders.forall(isHidden(childFirst, _)) && !folders.exists(isHidden(usual, _)))
    // The driver's own, with spark.driver.userClassPathFirst.
    assert(!Seq("/artifacts/spark-supplier.jar", "/app/classes/").exists(isHidden(childFirst, _)))
  }
}

/** Takes ClientJar from there, and all other classes from its parent. */
private final class OfJar(jar: URL, parent: ClassLoader)
    extends URLClassLoader(Array(jar), parent) {
  override def loadClass(name: String, resolve: Boolean): Class[_] =
    if (name.startsWith("org.apache.spark.supply.ClientJar"))
      Option(findLoadedClass(name)).getOrElse(findClass(name))
    else super.loadClass(name, resolve)
}
