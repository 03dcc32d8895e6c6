package supply.bench

import scala.io.Source
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.PropertyNamingStrategies
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.module.scala.{ClassTagExtensions, DefaultScalaModule}
import org.apache.logging.log4j.Level
import org.apache.logging.log4j.core.config.Configurator
import org.apache.spark.{SparkConf, SparkContext}

/** The Spark side of the benchmarks: answers each command on stdin with a line of JSON. */
object Bench {
  def main(arguments: Array[String]): Unit = {
    val conf = new SparkConf()
      .setIfMissing("spark.app.name", "supply-bench")
      .setIfMissing("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    val sc = new SparkContext(conf)
    // Benchmarks supply ranks hundreds of times.
    Configurator.setLevel("supply.run.Progress", Level.WARN)
    try {
      val session = new BenchSession(sc)
      answer(Done())
      Source.stdin.getLines().foreach { line =>
        answer(
          try session.run(Json.read[Command](line))
          catch { case NonFatal(e) => Failed(causes(e)) })
      }
    } finally sc.stop()
  }

  private def answer(value: AnyRef): Unit = {
    println(Json.write(value))
    System.out.flush()
  }

  private def causes(e: Throwable): String =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).map(
      _.toString.linesIterator.take(1).mkString).mkString("; by ")
}

/** Commands and answers as JSON, with names_like_this. */
private[bench] object Json {
  private val mapper = JsonMapper.builder()
    .addModule(DefaultScalaModule)
    .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
    .build() :: ClassTagExtensions

  def read[A: Manifest](text: String): A = mapper.readValue[A](text)

  def write(value: AnyRef): String = mapper.writeValueAsString(value)
}
