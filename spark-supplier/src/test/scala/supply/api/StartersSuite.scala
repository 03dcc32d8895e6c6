package supply.api

import org.apache.spark.SparkException
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.LocalSpark

class StartersSuite extends AnyFunSuite with LocalSpark {
  test("a task that starts ranks on another host than theirs says so") {
    val failure =
      intercept[SparkException](Starters.of(sc, java.util.Arrays.asList("node-9")).collect())
    assert(failure.getMessage.contains(
        "the task that starts the ranks of node-9 landed on"))
  }
}
