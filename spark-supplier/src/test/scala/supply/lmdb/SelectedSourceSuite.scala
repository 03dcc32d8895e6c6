package supply.lmdb

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumCursor
import supply.protocol.Schema
import supply.source._
import supply.testing.Elements

class SelectedSourceSuite extends AnyFunSuite {
  private val file = ForeignFile("/data.mdb", device = 1, inode = 2, bytes = 4096, 3)

  private def datums: DatumCursor = new DatumCursor((0 until 40).iterator.map(i =>
      (s"$i", s"${i + 1}", 1, 2, 3, i % 2 == 0, Array.fill(i)(i.toByte))))

  // Data, label and encoded, in this order.
  private val places = Array(-1, 1, -1, -1, -1, 2, 0)

  private def selected(cursor: KeepingCursor, places: Array[Int]): KeepingCursor =
    SelectedCursor(cursor, new SelectedWriter(places))

  private def expected(i: Int): Seq[Any] =
    Seq(i + 1, 2 -> (i % 2 == 0), 0 -> Seq.fill(i)(i.toByte))

  test("columns that are not selected go nowhere, the others to their new places") {
    assert(Elements.all(selected(datums, places)) == (0 until 40).map(expected))
  }

  test("elements are kept and recalled") {
    def drawn(cursor: KeepingCursor) = Elements.all(new ShuffledCursor(cursor, 7, seed = 5))
    val labels = drawn(datums).map(_(Datum.Label).asInstanceOf[Int])
    assert(labels != labels.sorted)
    assert(drawn(selected(datums, places)) == labels.map(label => expected(label - 1)))
  }

  test("what a source knows of its data is known of a part of the columns, too") {
    class Known extends KeepingSource {
      override def rdd: RDD[_] = null
      override def schema: Schema = Datum.schema
      override def mainColumn: Option[Int] = Some(Datum.Data)
      override def isOrdered: Boolean = true
      override def identity: Option[String] = Some("a path")
      override def bytes: Option[Long] = Some(7000)
      override def open(partition: Partition, context: TaskContext): KeepingCursor = datums
    }
    val images = new SelectedSource(new Known, IndexedSeq(Datum.Data, Datum.Label))
    assert(images.isOrdered && images.identity.contains("a path") && images.bytes.contains(7000L))
    assert(images.mainColumn.contains(0))
    val labels = new SelectedSource(new Known, IndexedSeq(Datum.Label))
    assert(labels.bytes.isEmpty && labels.mainColumn.isEmpty)
  }

  test("values in place follow their column") {
    val values = new ForeignValues()
    values.set(5, 50, 100L, 7, 0)
    values.set(6, 60, 200L, 8, 9)
    val cursor = new KeepingCursor {
      private var more = true
      override def next(): Boolean = more && { more = false; true }
      override def write(to: ElementWriter): Unit = {
        to.putInt(0, 8)
        to.refer(1, file, values, Array(5), 0, 1)
        to.refer(2, file, values, Array(0, 6), 1, 1)
        to.reserve(3, 8).putLong(9)
        to.putBoolean(4, true)
      }
      override def keep(place: Int): Unit = ()
      override def recall(place: Int): Unit = ()
      override def describe: String = "it"
      override def close(): Unit = ()
    }
    assert(Elements.all(selected(cursor, Array(1, -1, 0, -1, -1))) ==
      Seq(Seq[Any](8, (0, file, 200L, 60, 8, 9L))))
  }
}
