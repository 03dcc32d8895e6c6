package supply

import com.tngtech.archunit.core.domain.JavaClasses
import com.tngtech.archunit.core.importer.ClassFileImporter
import com.tngtech.archunit.lang.ArchRule
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition.{classes, noClasses}
import com.tngtech.archunit.library.Architectures.layeredArchitecture
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices
import org.scalatest.funsuite.AnyFunSuite

import supply.core.Deadline

/** The packages depend on each other in one direction only. docs/design/ shows the picture. */
final class ArchitectureSuite extends AnyFunSuite {
  import ArchitectureSuite._

  test("a package imports only the packages that its arrows point at") {
    val layers = arrows.foldLeft(layeredArchitecture().consideringOnlyDependenciesInLayers()) {
      case (all, (name, _)) => all.layer(name).definedBy(packageOf(name))
    }
    check(arrows.foldLeft(layers) {
      case (all, (name, Nil)) => all.whereLayer(name).mayNotAccessAnyLayer()
      case (all, (name, below)) => all.whereLayer(name).mayOnlyAccessLayers(below: _*)
    })
  }

  test("each class belongs to a package with arrows") {
    check(classes().should().resideInAnyPackage(arrows.map(arrow => packageOf(arrow._1)): _*))
  }

  test("no packages import each other in a circle") {
    check(slices().matching("supply.(**)").should().beFreeOfCycles())
  }

  test("only sources.lmdb imports lmdbjni") {
    check(outside("supply.sources.lmdb..").should().dependOnClassesThat().resideInAnyPackage(
        "org.fusesource..", "org.deephacks.."))
  }

  test(
    "only two packages lie in Spark's packages, and only org.apache.spark.supply imports its internals") {
    check(outside("org.apache.spark.supply..", "org.apache.spark.ml.supply..").should()
        .resideInAPackage("org.apache.spark.."))
    check(outside("org.apache.spark.supply..").should().dependOnClassesThat().resideInAnyPackage(
        Seq("deploy", "executor", "internal", "metrics", "network", "rpc", "ui").map(
          "org.apache.spark." + _ + ".."): _*))
  }

  test("everything but linalg runs without MLlib") {
    check(outside("supply.linalg..", "org.apache.spark.ml.supply..").should()
        .dependOnClassesThat().resideInAnyPackage("org.apache.spark.ml..",
          "org.apache.spark.mllib.."))
  }

  test("core, protocol, plan and pair know nothing of Spark SQL") {
    check(in("supply.core..", "supply.protocol..", "supply.plan..", "supply.pair..").should()
        .dependOnClassesThat().resideInAPackage("org.apache.spark.sql.."))
  }

  test("protocol, plan and pair know nothing of Spark") {
    check(in("supply.protocol..", "supply.plan..", "supply.pair..").should()
        .dependOnClassesThat().resideInAPackage("org.apache.spark.."))
  }

  test("core and protocol know nothing of mapped files and pipes") {
    check(in("supply.core..", "supply.protocol..").should().dependOnClassesThat()
        .resideInAPackage("java.nio.channels.."))
  }

  private def check(rule: ArchRule): Unit = rule.check(product)

  private def in(packages: String*) = noClasses().that().resideInAnyPackage(packages: _*)

  private def outside(packages: String*) =
    noClasses().that().resideOutsideOfPackages(packages: _*)
}

private object ArchitectureSuite {
  private val data = Seq("core", "protocol", "data")
  private val sources =
    Seq("sources", "sources.rows", "sources.cache", "sources.lmdb")
  private val executor = data ++ sources ++ Seq("plan", "pair", "results", "types")
  private val driver = executor :+ "executor"
  private val entryPoint = driver :+ "driver"

  /** Each package, and the packages that it may import. */
  private val arrows: Seq[(String, Seq[String])] = Seq(
    "core" -> Nil,
    "protocol" -> Seq("core"),
    "data" -> Seq("core", "protocol"),
    "plan" -> Seq("core", "protocol"),
    "pair" -> data,
    "types" -> Seq("core", "protocol"),
    "results" -> Seq("core", "protocol", "pair", "types"),
    "sources" -> data,
    "sources.rows" -> (data ++ Seq("types", internals)),
    "sources.cache" -> Seq("core"),
    "sources.lmdb" -> (data ++ Seq("sources", "sources.cache", internals)),
    "executor" -> (executor :+ internals),
    "driver" -> (driver :+ internals),
    "offload" -> (entryPoint :+ internals),
    "linalg" -> Seq("core", "driver", "offload", modelsOfMLlib),
    "datasource" -> entryPoint,
    root -> (entryPoint :+ "datasource"),
    "cli" -> entryPoint,
    "yarn" -> entryPoint,
    "python" -> (entryPoint ++ Seq("datasource", "offload", internals)),
    internals -> Seq("core"),
    modelsOfMLlib -> Nil)

  private def internals = "org.apache.spark.supply"

  private def modelsOfMLlib = "org.apache.spark.ml.supply"

  /** What Scala programs call. */
  private def root = "supply"

  private def packageOf(name: String) =
    if (Seq(internals, modelsOfMLlib, root).contains(name)) name
    else if (name == "sources") "supply.sources"
    else s"supply.$name.."

  private val product: JavaClasses = new ClassFileImporter().importUrl(
    classOf[Deadline].getProtectionDomain.getCodeSource.getLocation)
}
