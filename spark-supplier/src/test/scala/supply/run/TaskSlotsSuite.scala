package supply.run

import org.apache.spark.SparkConf
import org.apache.spark.supply.{ExecutorSlots, SparkInternals}
import org.scalatest.funsuite.AnyFunSuite

class TaskSlotsSuite extends AnyFunSuite {

  test("settings say how many executors will come, or nothing does") {
    def number(master: String, settings: (String, String)*) =
      TaskSlots.executorsOf(master, new SparkConf(false).setAll(settings))
    assert(number("yarn") == 0)
    assert(number("yarn", "spark.executor.instances" -> "3") == 3)
    assert(number("local-cluster[2, 3, 1024]") == 2)
    assert(number("local-cluster[2,4,1024]", "spark.executor.cores" -> "1") == 0)
    assert(number("spark://a:7077", "spark.cores.max" -> "8") == 0)
    assert(number("spark://a:7077", "spark.cores.max" -> "8", "spark.executor.cores" -> "2") == 4)
  }

  test("a task may have a part of a core, or several") {
    def slots(cores: Int, cpus: String) = {
      val ofTask = SparkInternals.coresOfTask(new SparkConf(false).set("spark.task.cpus", cpus))
      val found = ExecutorSlots("3", "node-a", cores, ofTask, 0)
      assert(found.coresOfSlots == found.slots * ofTask)
      found.slots
    }
    assert(Seq("0.5", "0.1", "1", "1.5", " 2 ", "7").map(slots(3, _)) == Seq(6, 30, 3, 2, 1, 0))
    assert(SparkInternals.coresOfTask(new SparkConf(false)) == 1)
  }

  test("Spark reads the host of a preferred executor, also with an underscore") {
    def location(host: String) = SparkInternals.location(ExecutorSlots("3", host, 1, 1, 0))
    assert(location("node-a") == "executor_node-a_3")
    assert(location("node_a") == "node_a")
  }
}
