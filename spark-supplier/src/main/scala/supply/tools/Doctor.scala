package supply.tools

import org.apache.spark.SPARK_VERSION

import supply.core.{BuiltFor, SourceException}
import supply.lmdb.LmdbEnvironments
import supply.protocol.Layout

/**
 * The Spark side of supply-doctor. spark-submit runs it in a JVM like those of the Supplier and its
 * executors. It prints one line for each check: STATUS, CHECK, TEXT and FIX, separated by tabs. Its
 * argument is the version of the contract that libsupply speaks.
 */
private[supply] object Doctor {
  private val javaVersion = 17

  def main(arguments: Array[String]): Unit =
    // With another Scala version, other classes of this jar, and Scala's collections, may not link.
    if (BuiltFor.mismatch != null)
      println("failed\tspark\t" + BuiltFor.mismatch + "\t" + BuiltFor.fix)
    else checks(arguments(0)).foreach(finding => println(finding.line))

  private def checks(libsupply: String): Seq[Finding] =
    Seq(java, spark, contract(libsupply), options, lmdb)

  private def java: Finding = {
    val text =
      s"${System.getProperty("java.version")} on ${System.getProperty("os.arch")}, ${System.getProperty("java.home")}"
    if (Runtime.version.feature >= javaVersion) Finding("ok", "java", text)
    else Finding("failed", "java", text, s"set JAVA_HOME to a Java $javaVersion or later")
  }

  private def spark: Finding = {
    val text = s"$SPARK_VERSION with Scala ${scala.util.Properties.versionNumberString}"
    if (BuiltFor.isTested) Finding("ok", "spark", text)
    else Finding("warning", "spark",
      s"$text, which is not tested: this jar is tested with Spark ${BuiltFor.tested.mkString(", ")}",
      BuiltFor.fix)
  }

  private def contract(libsupply: String): Finding = {
    val supplier = Layout.versionText(Layout.version)
    if (supplier == libsupply) {
      Finding("ok", "contract", s"the Supplier speaks $supplier, libsupply $libsupply")
    } else {
      Finding("failed", "contract", s"the Supplier speaks $supplier, libsupply $libsupply",
        "build both from the same release")
    }
  }

  /** lmdbjni reads the addresses of buffers in that package. */
  private def options: Finding = {
    val opened = classOf[Object].getModule.isOpen("sun.nio.ch", getClass.getModule)
    if (opened) Finding("ok", "options", "--add-opens java.base/sun.nio.ch is set")
    else {
      Finding(
        "failed",
        "options",
        "--add-opens java.base/sun.nio.ch=ALL-UNNAMED is not set",
        "start the Supplier with spark-submit, which sets it. If something overrides Spark's defaultJavaOptions, add it there")
    }
  }

  private def lmdb: Finding =
    try {
      LmdbEnvironments.requireLibrary()
      Finding("ok", "lmdb", "lmdbjni's native library loads")
    } catch {
      case e: SourceException => Finding("failed", "lmdb", e.getMessage)
    }
}

/**
 * A line of supply-doctor: what a check found, and what to do about it. `status`: ok, warning,
 * failed, or skipped if it cannot be judged.
 */
private[tools] final case class Finding(
    status: String, check: String, text: String, fix: String = "") {
  def line: String = Seq(status, check, text, fix).map(_.replaceAll("\\s", " ")).mkString("\t")
}
