package supply.rows

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.execution.vectorized.{Dictionary, OffHeapColumnVector, OnHeapColumnVector}
import org.apache.spark.sql.types.{ArrayType, DataType, MapType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.scalatest.funsuite.AnyFunSuite

import supply.rows.FrameBlocks.{inOrder, inVectors, isCopied}
import supply.source.ElementCursor
import supply.testing.{LongTest, TemporaryFolder}

/** Lists, structs and maps that are copied whole make the same blocks as their rows. */
class NestedBlocksSuite extends AnyFunSuite with FrameBlocks {
  private def nested: DataFrame = spark.range(0, FrameBlocks.rows, 1, 1).selectExpr("id",
    // No list is null, and no value.
    "sequence(0, int(id % 7)) as tokens",
    "transform(sequence(1, int(id % 3)), i -> cast(id * i as decimal(9, 2))) as prices",
    "transform(sequence(1, int(id % 3)), i -> date_add(date'1999-12-31', int(id))) as days",
    // Empty ones, null ones, and nulls in them.
    """if(id < 5, cast(array() as array<double>),
      transform(sequence(1, 1 + int(id % 5)), i -> i / 3 + id)) as empty_first""",
    """if(id % 4 = 1, null, if(id % 4 = 2, array(),
      transform(sequence(1, int(id % 9)), i -> if(i = 3, null, i * id)))) as longs_or_null""",
    "if(id < 500, array(), array(id % 3 = 0, null, id % 2 = 0)) as late_flags",
    """transform(sequence(1, 1 + int(id % 4)),
      i -> if(i = 2, null, concat('ä', id % 3, i))) as few_texts""",
    """if(id % 6 = 5, null,
      transform(sequence(1, int(id % 5)), i -> repeat('x', int(id % 90)))) as texts_or_null""",
    """if(id % 8 = 7, null, transform(sequence(1, int(id % 3)),
      i -> if(i = 2, null, cast(id * -i as decimal(30, 4))))) as large""",
    // As long in each row: more dimensions.
    "transform(sequence(1, 3), i -> id % i = 0) as three_flags",
    """if(id % 5 = 3, null,
      transform(sequence(1, 2), i -> if(id % 7 = 1, null, concat(id % 4, 'th')))) as two_texts""",
    """transform(sequence(1, 2),
      i -> transform(sequence(1, 3), j -> cast(i * j * id as float))) as matrix""",
    "if(id % 9 = 4, null, array(array(id, null), array(null, id * 3))) as matrix_or_null",
    // Lists of lists, and of structs.
    """if(id % 5 = 4, null,
      transform(sequence(1, int(id % 4)), i -> if(i = 2, null, sequence(0, i)))) as lists""",
    """transform(sequence(1, int(id % 3)), i -> transform(sequence(1, 2),
      j -> transform(sequence(1, int(id % j + 1)), k -> string(k)))) as thrice""",
    """if(id % 7 = 2, null, transform(sequence(1, int(id % 4)), i -> if(i = 3, null,
      named_struct('a', i, 'b', if(i = 2, null, string(id)))))) as structs""",
    "named_struct('x', id, 'y', id / 7, 'z', if(id % 3 = 0, null, string(id))) as struct",
    """if(id % 3 = 1, null, named_struct(
      'tiny', cast(id % 100 as tinyint), 'flag', if(id % 2 = 0, null, id % 5 = 0),
      'price', cast(id as decimal(12, 2)), 'text', string(id),
      'list', if(id % 5 = 0, null, sequence(0, int(id % 4))), 'three', array(id, 1L, 2L),
      'pair', named_struct('one', 1, 'two', if(id % 4 = 0, null, id)),
      'rows', array(array(string(id)), array('b')))) as struct_or_null""",
    "map('a', id, 'b', null) as map",
    """if(id % 5 = 1, null, if(id % 5 = 2, map(),
      map(int(id), sequence(0, int(id % 3)), -1, null))) as map_or_null""",
    "named_struct('map', map(string(id), named_struct('v', id))) as map_in_struct")

  for (offHeap <- Seq(false, true))
    test(s"nested columns of files (off-heap: $offHeap) make the same blocks as rows",
      (if (offHeap) Seq(LongTest) else Nil): _*) {
      withOffHeap(offHeap)(TemporaryFolder { folder =>
        nested.write.parquet(s"$folder/data")
        val data = spark.read.parquet(s"$folder/data")
        compareBlocks(data, inColumns(data), inRows(data))
        assert(loadedColumns(inColumns(data)) == data.columns.toSet)
      })
    }

  test("nested columns of ORC, which are read value by value, make the same blocks as rows") {
    TemporaryFolder { folder =>
      nested.write.orc(s"$folder/data")
      val data = spark.read.orc(s"$folder/data")
      compareBlocks(data, inColumns(data))
      assert(loadedColumns(inColumns(data)) == Set("id"))
    }
  }

  test("nested vectors over Arrow's memory make the same blocks as their rows") {
    compareArrowBlocks(nested.repartition(1))
  }

  test("what lies within a null in Arrow's memory is not written") {
    compareArrowBlocks(nested.repartition(1), hidden = _ % 3 == 2)
  }

  test("what lies in a vector between its lists is not read") {
    val data = spark.range(0, 60, 1, 1).selectExpr(
      "if(id % 3 = 1, null, sequence(0, int(id % 4))) as lists",
      "if(id % 3 = 1, null, array(int(id % 5), int(id % 4))) as pairs",
      "if(id % 3 = 1, null, array(string(id % 5), string(id % 4))) as pairs_of_texts",
      "if(id % 3 = 1, null, map(int(id % 5), string(id % 4))) as map")
    val source = inRows(data)
    val rows = data.queryExecution.toRdd.map(_.copy()).collect().toSeq
    def blocksBy(cursor: ElementCursor) =
      blocks(cursor, source.schema, source.mainColumn, 7, 0, blockBytes = 1 << 14)
    for (offHeap <- Seq(false, true)) {
      val vectors = data.schema.indices.map(i => apart(rows, i, data.schema(i).dataType, offHeap))
      val batch = new ColumnarBatch(vectors.toArray, rows.size)
      for ((column, vector) <- source.columns.zip(vectors))
        assert(isCopied(column, vector, rows.size), column.column.name)
      assert(blocksBy(inVectors(Iterator(batch), source.columns)) ==
        blocksBy(inOrder(rows.iterator, source.columns)))
      batch.close()
    }
  }

  /**
   * The lists or maps of a column in a vector whose values are numbers of a dictionary, as Spark's
   * reader of Parquet makes it: each null has a place in the child, too, where nothing has been written.
   */
  private def apart(rows: Seq[InternalRow], column: Int, dataType: DataType,
      offHeap: Boolean): ColumnVector = {
    val vector =
      if (offHeap) new OffHeapColumnVector(rows.size, dataType)
      else new OnHeapColumnVector(rows.size, dataType)
    val children = dataType match {
      case map: MapType => Seq(map.keyType, map.valueType)
      case list => Seq(list.asInstanceOf[ArrayType].elementType)
    }
    def values(row: InternalRow): Seq[ArrayData] = dataType match {
      case _: MapType => Seq(row.getMap(column).keyArray(), row.getMap(column).valueArray())
      case _ => Seq(row.getArray(column))
    }
    val ids = children.indices.map { i =>
      vector.getChild(i).setDictionary(NestedBlocksSuite.Numbers)
      vector.getChild(i).reserveDictionaryIds(4 * rows.size)
    }
    var at = 0
    for ((row, number) <- rows.zipWithIndex)
      if (row.isNullAt(column)) {
        vector.putNull(number)
        ids.foreach(_.putInt(at, 1 << 20))
        at += 1
      } else {
        val lists = values(row)
        for (i <- children.indices; j <- 0 until lists.head.numElements())
          ids(i).putInt(at + j, lists(i).get(j, children(i)).toString.toInt)
        vector.putArray(number, at, lists.head.numElements())
        at += lists.head.numElements()
      }
    vector
  }

  test("a column alone, of any kind, may be the widest one") {
    TemporaryFolder { folder =>
      nested.write.parquet(s"$folder/data")
      val data = spark.read.parquet(s"$folder/data")
      for (name <-
          Seq("tokens", "longs_or_null", "few_texts", "two_texts", "matrix_or_null", "lists",
            "struct_or_null", "map_or_null")) {
        val alone = data.select(name)
        compareBlocks(alone, inColumns(alone))
      }
    }
  }
}

private object NestedBlocksSuite {
  /** Those below ten, and no others. */
  object Numbers extends Dictionary {
    override def decodeToInt(id: Int): Int = {
      assert(id < 10, s"$id is no number of the dictionary")
      id
    }
    override def decodeToLong(id: Int): Long = decodeToInt(id).toLong
    override def decodeToFloat(id: Int): Float = decodeToInt(id).toFloat
    override def decodeToDouble(id: Int): Double = decodeToInt(id).toDouble
    override def decodeToBinary(id: Int): Array[Byte] = decodeToInt(id).toString.getBytes
  }
}
