package supply

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.tngtech.archunit.core.domain.JavaClasses
import com.tngtech.archunit.core.importer.ClassFileImporter
import com.tngtech.archunit.lang.ArchRule
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses
import org.scalatest.funsuite.AnyFunSuite

import supply.core.Deadline

/** The packages depend on each other in one direction only. docs/design/ shows the picture. */
final class ArchitectureSuite extends AnyFunSuite {
  import ArchitectureSuite._

  test("a package imports only the packages that its arrows point at, and each of these") {
    assert(imports.filter(found => !arrowSet(found._1)).values.toSet == Set.empty)
    assert(arrowSet -- imports.keySet == Set.empty)
  }

  test("the core imports no extension") {
    assert(imports.filter { case ((from, to), _) =>
      !(extensions ++ programs)(from) && extensions(to)
    }.values.toSet == Set.empty)
  }

  test("each class belongs to a package with arrows") {
    val known = arrows.map(_._1).toSet
    assert(product.asScala.map(_.getPackageName).filterNot(name => known(nameOf(name))).toSet ==
      Set.empty)
  }

  test("an arrow that is turned round is found") {
    arrowSet.foreach { case arrow @ (from, to) =>
      assert((imports.keySet -- (arrowSet - arrow + (to -> from))) == Set(arrow))
    }
  }

  test("arrows lead downwards: no packages import each other in a circle") {
    arrows.map(_._1).zipWithIndex.foreach { case (name, i) =>
      assert(arrows(i)._2.forall(below => arrows.take(i).exists(_._1 == below)), name)
    }
  }

  test("only what users call, or Spark's packages, is public") {
    val public = (for {
      file <- sources
      Declaration(name) <- Files.readAllLines(file, UTF_8).asScala
      where = file.getParent.getFileName.toString -> name
      if file.getFileName.toString != "Errors.scala"
    } yield where).groupBy(_._1).map { case (name, found) => name -> found.map(_._2).toSet }
    assert(public == publicClasses)
  }

  test("only lmdb imports lmdbjni") {
    check(outside("supply.lmdb..").should().dependOnClassesThat().resideInAnyPackage(
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

  test("everything but linalg runs without MLlib, and so do its ranks and matrices") {
    val mllib = Seq("org.apache.spark.ml..", "org.apache.spark.mllib..")
    check(outside("supply.linalg..", "spark_supplier.ml..", "org.apache.spark.ml.supply..").should()
        .dependOnClassesThat().resideInAnyPackage(mllib: _*))
    check(noClasses().that().haveNameMatching(
        "supply\\.linalg\\.(Ranks|Matrix|RankCommands|RankSocket|NodeCommand)\\b.*").should()
        .dependOnClassesThat().resideInAnyPackage(mllib: _*))
  }

  test("core, protocol, net, plan, pair and block know nothing of Spark SQL") {
    check(in("core", "protocol", "net", "plan", "pair", "block").should()
        .dependOnClassesThat().resideInAPackage("org.apache.spark.sql.."))
  }

  test("letters change their case in no language: a Turkish I is no i") {
    for (change <- Seq("toLowerCase", "toUpperCase"))
      check(noClasses().should().callMethod(classOf[String], change))
  }

  test("protocol, net, plan, pair and block know nothing of Spark") {
    check(in("protocol", "net", "plan", "pair", "block").should()
        .dependOnClassesThat().resideInAPackage("org.apache.spark.."))
  }

  test("core and protocol know nothing of mapped files and pipes") {
    check(in("core", "protocol").should().dependOnClassesThat()
        .resideInAPackage("java.nio.channels.."))
  }

  private def check(rule: ArchRule): Unit = rule.check(product)

  private def in(packages: String*) =
    noClasses().that().resideInAnyPackage(packages.map(name => s"supply.$name.."): _*)

  private def outside(packages: String*) =
    noClasses().that().resideOutsideOfPackages(packages: _*)
}

private object ArchitectureSuite {
  private val internals = "org.apache.spark.supply"
  private val modelsOfMLlib = "org.apache.spark.ml.supply"
  private val estimators = "spark_supplier.ml"

  private val data = Seq("core", "protocol", "source")

  /** Each package, after those that it imports, and these. */
  private val arrows: Seq[(String, Seq[String])] = Seq(
    "core" -> Nil,
    modelsOfMLlib -> Nil,
    internals -> Seq("core"),
    "protocol" -> Seq("core"),
    "source" -> Seq("core", "protocol"),
    "net" -> Seq("core"),
    "plan" -> Seq("core", "protocol"),
    "rows" -> (data :+ internals),
    "pair" -> (data :+ "net"),
    "block" -> (data :+ "pair"),
    "task" -> (data ++ Seq("plan", "pair", "block", internals)),
    "run" -> (data ++ Seq("net", "plan", "pair", "task", internals)),
    "lmdb" -> (data ++ Seq("plan", "rows", "task", "run", internals)),
    "results" -> Seq("core", "protocol", "plan", "rows", "pair", "block", "task", "run", internals),
    "api" -> Seq("core", "source", "net", "plan", "rows", "pair", "task", "run", "results",
      internals),
    "linalg" -> Seq("core", "plan", "rows", "pair", "task", "run", "results", "api"),
    estimators -> Seq("linalg", modelsOfMLlib),
    "tools" -> Seq("core", "protocol", "plan", "lmdb", "run"))

  private val extensions = Set("lmdb", "linalg", estimators, modelsOfMLlib)

  /** Of the launchers: they may call all. */
  private val programs = Set("tools")

  private val arrowSet = (for ((from, below) <- arrows; to <- below) yield from -> to).toSet

  /** What programs of users call, and what Spark's packages do, besides the errors. */
  private val publicClasses = Map(
    "api" -> Set("Results", "SupplyDataSource"),
    "core" -> Set("Deadline", "DriverCalls"),
    // The rest is for spark_supplier.ml, the estimators, which PySpark finds by the name of Python's package.
    "linalg" -> Set("HasK", "HasSparse", "Matrix", "MatrixRows", "OnRanks", "Ranks",
      "VectorColumns", "linalg"),
    "lmdb" -> Set("LmdbDataSource", "Supplier"),
    "plan" -> Set("Shuffle", "Uneven"),
    "task" -> Set("SupplySettings"))

  private val Declaration =
    """(?:final |sealed |abstract |case |implicit )*(?:package object|class|object|trait) (\w+).*""".r

  private def sources: Seq[Path] =
    Using.resource(Files.walk(Paths.get("src/main/scala/supply")))(
      _.iterator.asScala.filter(_.toString.endsWith(".scala")).toIndexedSeq)

  private val product: JavaClasses = new ClassFileImporter().importUrl(
    classOf[Deadline].getProtectionDomain.getCodeSource.getLocation)

  /** Of our packages, by name; a class that one imports from another. */
  private val imports: Map[(String, String), String] = {
    for {
      own <- product.asScala
      target <- own.getDirectDependenciesFromSelf.asScala.map(_.getTargetClass)
      (from, to) = nameOf(own.getPackageName) -> nameOf(target.getBaseComponentType.getPackageName)
      if from != to && arrows.exists(_._1 == to)
    } yield (from, to) -> s"${own.getName} imports ${target.getName}"
  }.toMap

  private def nameOf(packageName: String) = packageName.stripPrefix("supply.")
}
