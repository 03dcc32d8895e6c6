package supply.bench

import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted}

/** Listens for the stage that reads a shuffle: its time as Spark itself reports it. */
private[bench] final class ReadStage(sc: SparkContext) extends SparkListener with AutoCloseable {
  private val ended = new LinkedBlockingQueue[StageTime]
  sc.addSparkListener(this)

  override def onStageCompleted(completed: SparkListenerStageCompleted): Unit = {
    val stage = completed.stageInfo
    val read = stage.taskMetrics.shuffleReadMetrics
    for {
      start <- stage.submissionTime
      end <- stage.completionTime
      if read.recordsRead > 0
    } ended.add(StageTime(end - start, read.totalBytesRead))
  }

  /** Spark may notify listeners of a stage after its job has returned. */
  def await(): StageTime = {
    val stage = ended.poll(ReadStage.LimitSeconds, TimeUnit.SECONDS)
    if (stage == null) throw new IllegalStateException(
      s"Spark has reported no stage that reads a shuffle for ${ReadStage.LimitSeconds} s")
    stage
  }

  override def close(): Unit = sc.removeSparkListener(this)
}

private[bench] final case class StageTime(millis: Long, bytes: Long)

private object ReadStage {
  private val LimitSeconds = 30L
}
