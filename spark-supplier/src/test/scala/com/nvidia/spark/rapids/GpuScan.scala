package com.nvidia.spark.rapids

import org.apache.spark.sql.execution.{ColumnarToRowTransition, SparkPlan}

import supply.rows.EngineScan

/** A plan with a name of NVIDIA's RAPIDS, whose batches are on a GPU. */
class GpuScan extends EngineScan

case class GpuToRows(child: SparkPlan) extends ColumnarToRowTransition {
  override def output = child.output
  override protected def doExecute() = throw new UnsupportedOperationException
  override protected def withNewChildInternal(newChild: SparkPlan) = copy(newChild)
}
