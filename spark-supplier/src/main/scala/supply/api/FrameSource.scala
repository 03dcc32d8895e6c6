package supply.api

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.execution.datasources.LogicalRelation

import supply.core.ConfigException
import supply.lmdb.{Datum, LmdbSource}
import supply.rows.{Shapes, RowSource}
import supply.run.InPlaceHint
import supply.source.{SelectedSource, Source}

/** What ranks get of a DataFrame: its rows, or columns of the LMDB that it reads, in place. */
private[supply] object FrameSource {
  /** Throws a SupplyException if it cannot be supplied. A stream keeps its `shapes`. */
  def of(data: DataFrame, shapes: Shapes): Source = {
    val plans = data.queryExecution
    scanned(plans.optimizedPlan) match {
      case Some((lmdb, columns)) if lmdb.inPlace =>
        val all = new LmdbSource(lmdb.rdd, inPlace = true)
        if (columns == Datum.schema.columns.indices) all else new SelectedSource(all, columns)
      case copied =>
        if (plans.analyzed.collectWithSubqueries(relation).exists(_.inPlace))
          throw new ConfigException(
            "a DataFrame that was read with inPlace can only be supplied as it is, or some of its columns: where(), " +
              "repartition(), persist(), expressions and the like make rows of it. Read it without that option")
        copied.filter(_._2.contains(Datum.Data)).foreach { case (lmdb, _) =>
          InPlaceHint.show(lmdb.rdd, "option(\"inPlace\", true) of its reader")
        }
        RowSource.of(data, shapes)
    }
  }

  /** The LMDB that a plan reads, and which of its columns, if the plan does nothing else. */
  private def scanned(plan: LogicalPlan): Option[(LmdbRelation, IndexedSeq[Int])] = plan match {
    case Project(list, scan) =>
      val columns =
        list.map(each => scan.output.indexWhere(_.semanticEquals(each))).toIndexedSeq
      relation.lift(scan).filter(_ => !columns.contains(-1) && columns.distinct == columns).map(
        _ -> columns)
    case scan => relation.lift(scan).map(_ -> Datum.schema.columns.indices)
  }

  private val relation: PartialFunction[LogicalPlan, LmdbRelation] = Function.unlift {
    case scan: LogicalRelation =>
      scan.relation match {
        case found: LmdbRelation => Some(found)
        case _ => None
      }
    case _ => None
  }
}
