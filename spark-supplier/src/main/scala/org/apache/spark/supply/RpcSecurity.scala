package org.apache.spark.supply

import java.io.File

import org.apache.spark.SparkContext

/**
 * How Spark's own connections are secured.
 *
 * Public API: the settings themselves, but Spark reads the passwords of key stores from Hadoop's
 * credential providers and from the environment, too.
 */
object RpcSecurity {
  /** A key store, with what Spark knows of it. */
  final case class Keys(file: File, kind: Option[String], password: Option[String],
      keyPassword: Option[String])

  def isEncrypted(sc: SparkContext): Boolean =
    isTls(sc) || sc.env.securityManager.isEncryptionEnabled()

  /** That of `spark.ssl.rpc`, if TLS is on there. PEM files are none. */
  def keys(sc: SparkContext): Option[Keys] =
    if (!isTls(sc)) None
    else {
      val options = sc.env.securityManager.getSSLOptions("rpc")
      options.keyStore.map(
        Keys(_, options.keyStoreType, options.keyStorePassword, options.keyPassword))
    }

  private def isTls(sc: SparkContext) = sc.getConf.getBoolean("spark.ssl.rpc.enabled", false)
}
