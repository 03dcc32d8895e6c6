package supply.testing

import org.apache.spark.{SparkConf, SparkContext}
import org.scalatest.{BeforeAndAfterAll, Suite, SuiteMixin}

/** Tests that start a Spark: `make test-fast` leaves them out. */
trait WithSpark extends SuiteMixin { this: Suite =>
  abstract override def tags: Map[String, Set[String]] =
    super.tags ++ testNames.map(name => name -> (super.tags.getOrElse(name, Set.empty) + "spark"))
}

/** One local Spark for the tests of a suite. */
trait LocalSpark extends WithSpark with BeforeAndAfterAll { this: Suite =>
  protected def slots: Int = 2

  protected lazy val sc: SparkContext = SparkContext.getOrCreate(new SparkConf()
      .setMaster(s"local[$slots]")
      .setAppName(suiteName)
      .set("spark.ui.enabled", "false")
      .set("spark.log.level", "OFF"))

  override protected def afterAll(): Unit =
    try sc.stop()
    finally super.afterAll()
}
