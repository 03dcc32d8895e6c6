package supply.protocol

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

/** Layout has each row of proto/layout.tsv, and nothing else. */
class LayoutSuite extends AnyFunSuite {
  private val rows =
    Files.readAllLines(Paths.get("../proto/layout.tsv")).asScala.toSeq.tail.map(_.split("\t").toSeq)

  private def objectName(structure: String) = structure.split('_').map(_.capitalize).mkString

  private def fieldName(field: String) =
    if (field == field.toUpperCase) field
    else { val words = field.split('_'); words.head + words.tail.map(_.capitalize).mkString }

  private def module(structure: String): AnyRef =
    Class.forName(s"supply.protocol.Layout$$${objectName(structure)}$$").getField("MODULE$").get(
      null)

  private def value(structure: String, field: String): Long = {
    val in = module(structure)
    in.getClass.getMethod(fieldName(field)).invoke(in).asInstanceOf[Number].longValue
  }

  rows.groupBy(_.head).foreach { case (structure, fields) =>
    test(s"$structure is as in layout.tsv") {
      fields.foreach(row =>
        assert(value(structure, row(1)) == row(2).toLong, s"${row(0)}.${row(1)}"))
    }

    test(s"$structure has no field that layout.tsv lacks") {
      val known = fields.map(row => fieldName(row(1))).toSet
      val declared = module(structure).getClass.getDeclaredMethods.map(_.getName)
        .filterNot(name => name.contains('$') || name == "writeReplace").toSet
      assert(declared -- known == Set.empty)
    }
  }

  test("the failure texts have the sizes of layout.tsv") {
    val bytes = rows.collect {
      case Seq("mapped_file_header", name, _, n, _*) if name.endsWith("_failure") => n.toInt
    }
    assert(bytes.toSet == Set(Layout.FailureTextBytes))
  }

  test("the magic is the bytes of the table") {
    val hex = rows.find(row => row(0) == "mapped_file_header" && row(1) == "magic").get(
      6).takeWhile(_ != ',')
    assert(Layout.Magic.map(b => f"$b%02X").mkString(" ") == hex)
  }
}
