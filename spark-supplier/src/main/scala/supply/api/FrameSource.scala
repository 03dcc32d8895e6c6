package supply.api

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.execution.datasources.LogicalRelation

import supply.core.ConfigException
import supply.rows.{InPlaceRelation, RowSource, Shapes}
import supply.source.Source

/** What ranks get of a DataFrame: its rows, or columns of the relation that it reads, in place. */
private[supply] object FrameSource {
  /** Throws a SupplyException if it cannot be supplied. A stream keeps its `shapes`. */
  def of(data: DataFrame, shapes: Shapes): Source = {
    val plans = data.queryExecution
    scanned(plans.optimizedPlan) match {
      case Some((found, columns)) if found.inPlace => found.source(columns)
      case copied =>
        if (plans.analyzed.collectWithSubqueries(relation).exists(_._1.inPlace))
          throw new ConfigException(
            "a DataFrame that was read with inPlace can only be supplied as it is, or some of its columns: where(), " +
              "repartition(), persist(), expressions and the like make rows of it. Read it without that option")
        copied.foreach { case (found, columns) => found.noteCopied(columns) }
        RowSource.of(data, shapes)
    }
  }

  /** What a plan reads, and which of its columns, if the plan does nothing else. */
  private def scanned(plan: LogicalPlan): Option[(InPlaceRelation, IndexedSeq[Int])] = plan match {
    case Project(list, scan) =>
      val columns =
        list.map(each => scan.output.indexWhere(_.semanticEquals(each))).toIndexedSeq
      relation.lift(scan).filter(_ => !columns.contains(-1) && columns.distinct == columns).map {
        case (found, _) => found -> columns
      }
    case scan => relation.lift(scan)
  }

  /** With all its columns. */
  private val relation: PartialFunction[LogicalPlan, (InPlaceRelation, IndexedSeq[Int])] =
    Function.unlift {
      case scan: LogicalRelation =>
        scan.relation match {
          case found: InPlaceRelation => Some(found -> scan.output.indices)
          case _ => None
        }
      case _ => None
    }
}
