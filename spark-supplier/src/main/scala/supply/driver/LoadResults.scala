package supply.driver

import org.apache.spark.SparkContext

import supply.core.ContractException
import supply.protocol.{Column, Schema}

/** Finds the results of all ranks by a job on the nodes. Returns when all are sealed. */
private[supply] object LoadResults {
  /** How long Spark may take to start the tasks and return what they found. */
  private val startSeconds = 10.0

  def apply(sc: SparkContext, settings: ResultsSettings): LoadedResults = {
    val hosts = settings.readHosts()
    SessionResults.begin(sc)
    val end = System.currentTimeMillis() + (settings.timeout * 1000).toLong
    val node = new NodeResults(settings, hosts, end)
    val found = NodeJob.runWhile(sc, hosts, s"waiting for the result '${settings.name}'",
      settings.timeout + startSeconds)(_ => SessionResults.inTask(node.find()))(
      _.left.toOption).flatMap(_.toOption.get).sortBy(_.rank).toIndexedSeq
    new LoadedResults(sc, hosts, settings.name, found, commonSchema(settings.name, found))
  }

  /** The columns of all ranks. One that is nullable on any rank is nullable. */
  private def commonSchema(name: String, found: IndexedSeq[FoundResult]): Schema = {
    // A rank without rows does not know how long lists are.
    def described(schema: Schema) = schema.columns.map(column =>
      s"${column.name} ${column.format.replaceFirst(":[0-9]+$", "")}${column.childFormat}").mkString(
      ", ")
    val first = found.head.schema
    found.find(other => described(other.schema) != described(first)).foreach { other =>
      throw new ContractException(
        s"the ranks have written other columns into the result '$name': rank ${found.head.rank} has " +
          s"${described(first)}; rank ${other.rank} has ${described(other.schema)}")
    }
    Schema(first.columns.indices.map { i =>
      val column: Column = first.columns(i)
      column.copy(nullable = found.exists(_.schema.columns(i).nullable))
    })
  }
}
