package supply.testing

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.sql.SparkSession
import org.scalatest.{BeforeAndAfterAll, Suite, SuiteMixin}

/** Tests that start a Spark: `make test-fast` leaves them out. */
trait WithSpark extends SuiteMixin { this: Suite =>
  abstract override def tags: Map[String, Set[String]] =
    super.tags ++ testNames.map(name => name -> (super.tags.getOrElse(name, Set.empty) + "spark"))
}

/** One local Spark for the tests of a suite. */
trait LocalSpark extends WithSpark with BeforeAndAfterAll { this: Suite =>
  protected def slots: Int = 2

  protected def master: String = s"local[$slots]"

  protected def sparkSettings: Seq[(String, String)] = Nil

  protected lazy val sc: SparkContext = SparkContext.getOrCreate(new SparkConf()
      .setMaster(master)
      .setAppName(suiteName)
      .set("spark.ui.enabled", "false")
      .set("spark.log.level", "OFF")
      .setAll(sparkSettings))

  override protected def afterAll(): Unit =
    try sc.stop()
    finally super.afterAll()
}

/** With a session of it. */
trait LocalSession extends LocalSpark { this: Suite =>
  protected lazy val spark: SparkSession = SparkSession.builder().config(sc.getConf).getOrCreate()
}
