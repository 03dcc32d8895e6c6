package supply.api

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, ExprId, InputFileBlockLength, InputFileBlockStart, InputFileName, RowNumber, UserDefinedExpression, WindowExpression}
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Deduplicate, Distinct, Generate, GlobalLimit, Join, LogicalPlan, RebalancePartitions, RepartitionOperation, SetOperation, Sort, Union, Window}
import org.apache.spark.sql.execution.{ExternalRDD, LogicalRDD}
import org.apache.spark.supply.SparkInternals

import supply.core.Hint

/**
 * Columns that depend on the order in which Spark computes rows. After a shuffle it is another one
 * each time, and then `monotonically_increasing_id()` gives a row another number. To Spark this
 * function is as little deterministic without a shuffle, when the numbers stay.
 */
private[supply] object OrderDependence {
  /** The names of such columns of `data`; none if that is not known. Computes nothing. */
  def columns(data: DataFrame): Seq[String] = Hint("which columns depend on its order") {
    val plan = inlined(data.queryExecution.analyzed)
    val found = rows(plan).dependent
    Some(plan.output.filter(each => found(each.exprId)).map(_.name))
  }.getOrElse(Nil)

  /** Versions of Spark have different constructors of this class, each with more options, which are false. */
  private def inlined(plan: LogicalPlan): LogicalPlan = {
    val constructor = classOf[InlineCTE].getConstructors.head
    val alwaysInline = true
    val options = alwaysInline +: Seq.fill(constructor.getParameterCount - 1)(false)
    constructor.newInstance(options.map(Boolean.box): _*).asInstanceOf[InlineCTE](plan)
  }

  /** isOrdered: Spark computes the rows of the partitions in the same order each time. */
  private final case class Rows(dependent: Set[ExprId], isOrdered: Boolean)

  private def rows(plan: LogicalPlan): Rows = {
    val children = plan.children.map(rows)
    val below = children.flatMap(_.dependent).toSet
    val isOrdered = children.forall(_.isOrdered) && keepsOrder(plan)
    def depends(value: Expression) =
      value.references.exists(each => below(each.exprId)) || value.exists {
        case function: UserDefinedExpression => !isOwnlyDeterministic(function)
        case WindowExpression(_: RowNumber, window) => window.orderSpec.forall(_.child.foldable)
        case _: InputFileName | _: InputFileBlockStart | _: InputFileBlockLength => false
        case other => !isOrdered && !isOwnlyDeterministic(other)
      }
    val made = plan match {
      case union: Union =>
        union.children.flatMap(_.output.zip(union.output)).collect {
          case (from, to) if below(from.exprId) => to.exprId
        }
      case generate: Generate if depends(generate.generator) =>
        generate.generatorOutput.map(_.exprId)
      case _ =>
        plan.expressions.flatMap(_.collect {
          case made: Alias if depends(made.child) => made.exprId
        })
    }
    Rows(below ++ made, isOrdered)
  }

  private def keepsOrder(plan: LogicalPlan): Boolean = plan match {
    case scan: LogicalRDD => SparkInternals.isRepeatable(scan.rdd)
    case scan: ExternalRDD[_] => SparkInternals.isRepeatable(scan.rdd)
    case sort: Sort => !sort.global
    case repartition: RepartitionOperation => !repartition.shuffle
    case _: Aggregate | _: Deduplicate | _: Distinct | _: GlobalLimit | _: Join |
        _: RebalancePartitions | _: SetOperation | _: Window => false
    case other => !Grouping.exists(other.nodeName.startsWith)
  }

  /** Functions over groups, of Python and of Scala: the classes differ between Sparks. */
  private val Grouping =
    Seq("FlatMapGroups", "FlatMapCoGroups", "MapGroups", "CoGroup", "TransformWithState")

  /** Apart from what it is computed from. */
  private def isOwnlyDeterministic(value: Expression): Boolean =
    value.deterministic || value.children.exists(!_.deterministic)
}
