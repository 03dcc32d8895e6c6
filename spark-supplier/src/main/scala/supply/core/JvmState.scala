package supply.core

import java.util.concurrent.ConcurrentHashMap
import java.util.function.{Function => JavaFunction}
import java.util.{Map => JavaMap}

/**
 * What must be there once in a JVM, also if Spark has loaded this class several times: an executor
 * has a class loader for each session of Spark Connect that brings its own jars.
 */
private[supply] object JvmState {
  /**
   * The map of that name. Keys and values must be of classes that all loaders share, those of Java,
   * Scala and Spark, or the caller must expect values of other loaders.
   */
  def map[K, V](name: String): ConcurrentHashMap[K, V] = {
    val make: JavaFunction[AnyRef, AnyRef] = _ => new ConcurrentHashMap[K, V]
    val ofJvm: JavaMap[AnyRef, AnyRef] = System.getProperties
    ofJvm.computeIfAbsent(s"supply.state.$name", make)
      .asInstanceOf[ConcurrentHashMap[K, V]]
  }
}
