package supply.rows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.LocalSpark

class EvenRowsSuite extends AnyFunSuite with LocalSpark {
  test("rows that Spark cannot compare are dealt, too, and in one order") {
    val spark = SparkSession.builder().config(sc.getConf).getOrCreate()
    val variant =
      if (spark.version < "4") Nil else Seq("parse_json(concat('[', id % 4, ']')) as variant")
    // Some rows are equal.
    val data = spark.range(0, 40, 1, 1).selectExpr(
      Seq("id % 4 as few", "map('a', id % 4) as map", "array(map(id % 4, 'b')) as maps") ++
        variant: _*)
    def dealt: Seq[Seq[Long]] = {
      val source = EvenRows.of(data, RowSource.of(data, new Shapes), 3).get
      source.rdd.asInstanceOf[RDD[InternalRow]].map(_.getLong(0)).glom().collect().toSeq.map(
        _.toSeq)
    }
    val once = dealt
    assert(once.map(_.size).sorted == Seq(13, 13, 14))
    assert(dealt == once)
  }
}
