package supply.sources.rows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder, XxHash64}
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning
import org.apache.spark.sql.execution.{SortExec, SQLExecutionRDD}
import org.apache.spark.sql.execution.exchange.{REPARTITION_BY_NUM, ShuffleExchangeExec}
import org.apache.spark.sql.internal.SQLConf

import supply.data.Source

/** The rows of a DataFrame, dealt to partitions in turn. The stages in front are not run again. */
private[supply] object EvenRows {
  /** Whether the rows of that source are a DataFrame's, and not read in place. */
  def canBeOf(own: Source): Boolean = own.isInstanceOf[DataFrameSource]

  /** `own`: the source of the DataFrame's own partitions. None: it cannot be repartitioned. */
  def of(data: DataFrame, own: Source, partitions: Int): Option[Source] = own match {
    case frame: DataFrameSource =>
      Some(new RowSource(rows(data, partitions), frame.columns, isOrdered = true))
    case _ => None
  }

  /**
   * Tasks that are tried again, and runs that resume, need the same rows in the same order. So Spark
   * sorts the rows before it deals them, by its setting, and each partition is sorted: by a hash, since
   * a rank that gets rows in the order of the label learns nothing.
   */
  private def rows(data: DataFrame, partitions: Int): RDD[InternalRow] = {
    val query = data.queryExecution
    val session = query.sparkSession
    val conf = session.sessionState.conf.clone()
    conf.setConf(SQLConf.SORT_BEFORE_REPARTITION, true)
    withActive(session)(SQLConf.withExistingConf(conf) {
      val dealt = ShuffleExchangeExec(RoundRobinPartitioning(partitions), query.executedPlan,
        REPARTITION_BY_NUM)
      val order = new XxHash64(dealt.output) +: dealt.output
      val sorted = SortExec(order.map(SortOrder(_, Ascending)), global = false, dealt)
      new SQLExecutionRDD(sorted.execute(), session.sessionState.conf)
    })
  }

  /** Operators take the session of their thread. */
  private def withActive[A](session: SparkSession)(body: => A): A = {
    val before = SparkSession.getActiveSession
    SparkSession.setActiveSession(session)
    try body
    finally before.fold(SparkSession.clearActiveSession())(SparkSession.setActiveSession(_))
  }
}
