package supply.run

import java.math.BigInteger
import java.security.{KeyFactory, KeyPairGenerator, MessageDigest}
import javax.crypto.KeyAgreement
import javax.crypto.interfaces.DHPublicKey
import javax.crypto.spec.{DHParameterSpec, DHPublicKeySpec}

import scala.util.Try

import supply.core.ConfigException

/**
 * Diffie-Hellman in ffdhe2048 (RFC 7919), by which a client and this JVM agree on a run's key. Spark
 * shows a read's options to more people than may know the key, and an option that its configuration
 * would redact, too.
 */
private[supply] object RunKey {
  private val Prime = new BigInteger(
    "ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce249b3ef9" +
      "7d2fe363630c75d8f681b202aec4617ad3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3b557135e7f57c935" +
      "984f0c70e0e68b77e2a689daf3efe8721df158a136ade73530acca4f483a797abc0ab182b324fb61d108a94bb2c8e3fb" +
      "b96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d709e02fce1cdf7e2ecc03404cd28342f61" +
      "9172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc2ec22005c58ef1837d1683b2c6f34a26c1b2effa" +
      "886b423861285c97ffffffffffffffff",
    16)
  private val Generator = BigInteger.valueOf(2)

  /** Of this JVM, so that one client has the same key each time. */
  private lazy val own = {
    val generator = KeyPairGenerator.getInstance("DH")
    generator.initialize(new DHParameterSpec(Prime, Generator))
    generator.generateKeyPair()
  }

  /** This JVM's number, for the client: hexadecimal. */
  def public: String = own.getPublic.asInstanceOf[DHPublicKey].getY.toString(16)

  /** The key with a client that has this number: hexadecimal. */
  def agreed(public: String): Array[Byte] = {
    val theirs = Try(new BigInteger(public, 16)).getOrElse(
      throw new ConfigException("public is no hexadecimal number"))
    if (theirs.compareTo(Generator) < 0 || theirs.compareTo(Prime.subtract(Generator)) > 0)
      throw new ConfigException("public is no number of ffdhe2048")
    val agreement = KeyAgreement.getInstance("DH")
    agreement.init(own.getPrivate)
    agreement.doPhase(
      KeyFactory.getInstance("DH").generatePublic(
        new DHPublicKeySpec(theirs, Prime, Generator)),
      true)
    MessageDigest.getInstance("SHA-256").digest(agreement.generateSecret())
  }
}
