package supply.datasource

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.LogicalRelation

import supply.core.ConfigException
import supply.data.Source
import supply.driver.InPlaceHint
import supply.sources.lmdb.LmdbSource
import supply.sources.rows.{ListLengths, RowSource}

/** What ranks get of a DataFrame: its rows, or the LMDB that it is, in place. */
private object FrameSource {
  /** Throws a SupplyException if it cannot be supplied. A stream keeps its `lengths`. */
  def of(data: DataFrame, lengths: ListLengths): Source = {
    val plans = data.queryExecution
    // Only a scan of the whole LMDB is left alone by the optimizer.
    lmdb.lift(plans.optimizedPlan) match {
      case Some(whole) if whole.inPlace => new LmdbSource(whole.rdd, inPlace = true)
      case whole =>
        if (plans.analyzed.collectWithSubqueries(lmdb).exists(_.inPlace))
          throw new ConfigException(
            "a DataFrame that was read with inPlace can only be supplied as it is: select(), where(), repartition(), " +
              "persist() and the like make rows of it. Read it without that option")
        whole.foreach(read => InPlaceHint.show(read.rdd, "option(\"inPlace\", true) of its reader"))
        RowSource.of(data, lengths)
    }
  }

  private val lmdb: PartialFunction[LogicalPlan, LmdbRelation] = Function.unlift {
    case scan: LogicalRelation =>
      scan.relation match {
        case found: LmdbRelation => Some(found)
        case _ => None
      }
    case _ => None
  }
}
