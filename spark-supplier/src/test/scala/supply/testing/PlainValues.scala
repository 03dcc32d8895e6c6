package supply.testing

import org.apache.spark.sql.Row

object PlainValues {
  /** A value of a row, of classes that can be compared. */
  def of(value: Any): Any = value match {
    case bytes: Array[Byte] => bytes.toSeq
    case row: Row => row.toSeq.map(of)
    case list: scala.collection.Seq[_] => list.map(of).toSeq
    case map: scala.collection.Map[_, _] => map.map { case (key, part) =>
        of(key) -> of(part)
      }.toMap
    case other => other
  }
}
