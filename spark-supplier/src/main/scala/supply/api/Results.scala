package supply.api

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import supply.core.ConfigException
import supply.results.ResultsTable

/** Results of ranks that a program has loaded: `spark.read.format("supply").option("results", …)`. */
object Results {
  /**
   * The option of a DataFrame's writer that calls [[release]], for programs without this class: those
   * of Python and of Spark Connect.
   */
  final val Release = "release"

  /**
   * Removes the files of all results that `data` reads, on all nodes. Spark has copied nothing, so
   * neither `data` nor any other DataFrame of these results can be computed afterwards, unless it
   * is cached. Memory is free when the tasks that read the results have ended.
   *
   * Without this call, the files stay until the session ends.
   * Throws a ConfigException if `data` reads no result.
   */
  def release(data: DataFrame): Unit = {
    val loaded = data.queryExecution.analyzed.collectWithSubqueries {
      case relation: DataSourceV2Relation => relation.table
    }.collect { case table: ResultsTable => table.loaded }
    if (loaded.isEmpty)
      throw new ConfigException(
        "this DataFrame reads no result of ranks: there is nothing to release")
    loaded.distinct.foreach(_.release())
  }
}
