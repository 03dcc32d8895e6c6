package supply.datasource

import org.apache.spark.TaskContext
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

import supply.core.{ContractException, DriverCalls}
import supply.executor.{FoundResult, Misplaced, PinnedTask}
import supply.plan.RankPlacement
import supply.results.OpenResults

/** Reads the blocks of one rank, each as a batch over the mapped memory. `columns`: which ones. */
private final class ResultsReader(file: FoundResult, columns: Array[Int], driver: DriverCalls)
    extends PartitionReader[ColumnarBatch] {
  requireNode()
  private val use = OpenResults.use(file.path, file.generation)
  // Strings of the last batch may be used until the end of the task.
  TaskContext.get().addTaskCompletionListener[Unit](_ => use.close())
  // The JVM's error for memory that is gone names no file. It ends the executor, whose next attempts Spark may refuse.
  TaskContext.get().addTaskFailureListener((_, _) => use.requireWhole())
  if (use.header.elements != file.elements)
    throw new ContractException(
      s"${file.path.file} has ${use.header.elements} elements, and had ${file.elements} when it was loaded")

  private var index = 0
  private var elements = 0L
  private var batch: ColumnarBatch = _

  override def next(): Boolean = {
    use.requireWhole()
    val more = index < use.header.blockCount
    if (more) {
      val block = use.block(index, elements)
      val vectors = columns.map(column => block.vector(column): ColumnVector)
      batch = new ColumnarBatch(vectors, block.elements)
      index += 1
      elements += block.elements
    }
    more
  }

  override def get(): ColumnarBatch = batch

  override def close(): Unit = ()

  private def requireNode(): Unit = {
    val here = PinnedTask.host
    if (here != file.host && !RankPlacement(Some(file.host), 0).isOn(here))
      Misplaced.stop(
        driver,
        s"the task of the result of rank ${file.rank} landed on $here, but its file is on ${file.host} " +
          s"(${file.path.file}): Spark needs an executor there; set spark.locality.wait to a minute or more")
  }
}
