package supply.core

import org.apache.spark.SparkException
import org.scalatest.funsuite.AnyFunSuite

/** What users read of a failure of Spark. */
class FailureTextSuite extends AnyFunSuite {
  import FailureTextSuite._

  private val inner = new NumberFormatException("For input string: \"abc\"")

  test("an error class with the file, and the innermost cause") {
    val parsing = new SparkException(
      "[MALFORMED] Malformed records: [null].\nParse Mode: FAILFAST.  SQLSTATE: 22023", inner)
    val reading =
      new SparkException("[FAILED_READ_FILE.NO_HINT] Error in file:/x.csv.  SQLSTATE: KD001",
        new RuntimeException(parsing))
    val text =
      "[FAILED_READ_FILE.NO_HINT] Error in file:/x.csv: [MALFORMED] Malformed records: [null]. " +
        "Parse Mode: FAILFAST: java.lang.NumberFormatException: For input string: \"abc\""
    assert(FailureText.of(reading) == text)
    assert(FailureText.of(new SparkException("Job aborted due to stage failure: Task 0",
        reading)) ==
      text)
  }

  test("a cause without a text is its class") {
    val died = new SparkException("Python worker exited unexpectedly (crashed)",
      new java.io.EOFException)
    assert(FailureText.of(died) ==
      "Python worker exited unexpectedly (crashed): java.io.EOFException")
    assert(FailureText.of(new NullPointerException) == "java.lang.NullPointerException")
  }

  test("a cause without a text that is known as text only") {
    val text =
      "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat a.B.c(B.scala:1)\n" +
        "Caused by: java.io.EOFException\n\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:1)"
    assert(FailureText.ofTask(text, _ => None) ==
      "Python worker exited unexpectedly (crashed): java.io.EOFException")
  }

  test("an error of this product is its own text, wherever it is") {
    val known = new SourceException("the LMDB has gone", inner)
    assert(FailureText.of(new SparkException("Job aborted due to stage failure", known)) ==
      "the LMDB has gone")
  }

  test("only an interrupt of the program is one, and none of a task") {
    val interrupt = new RuntimeException("waiting", new InterruptedException)
    assert(
      FailureText.of(interrupt).startsWith("the program that ran the Supplier was interrupted"))
    assert(FailureText.of(new SparkException("Job aborted due to stage failure: Task 0",
        interrupt)) ==
      "java.lang.RuntimeException: waiting: java.lang.InterruptedException")
  }

  test("a traceback becomes the exception and the user's line") {
    val frames = worker + """  File "/home/me/train.py", line 30, in check""" + "\n"
    assert(
      FailureText.ofPython(frames + "    assert x < 50\n           ^^^^^^\nAssertionError\n") ==
        """Spark's Python worker raised AssertionError (File "/home/me/train.py", line 30, in check: assert x < 50)""")
    val library = """  File "/usr/lib/python3/dist-packages/numpy/core.py", line 2, in add""" + "\n"
    assert(FailureText.ofPython(
      frames + "    add(x)\n" + library + "    raise Oops(x)\nOops: one\n two\n") ==
      """Spark's Python worker raised Oops: one two (File "/home/me/train.py", line 30, in check)""")
    assert(FailureText.ofPython(worker + "some.module.Odd: text\n") ==
      "Spark's Python worker raised some.module.Odd: text")
  }

  test("an exception of a Python function with its own cause") {
    val first = worker + "  File \"<stdin>\", line 1, in f\nKeyError: 'a'\n"
    val second = worker + "  File \"<stdin>\", line 3, in f\nValueError: no a\n"
    val chained = first +
      "\nThe above exception was the direct cause of the following exception:\n\n" + second
    assert(FailureText.ofPython(chained) ==
      "Spark's Python worker raised ValueError: no a (File \"<stdin>\", line 3, in f), " +
      "caused by KeyError: 'a' (File \"<stdin>\", line 1, in f)")
  }

  test("what Spark's scheduler has as text only") {
    val lost =
      "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: " +
        "Command exited with code 137"
    assert(FailureText.ofTask(lost, Map("3" -> "node-1").get(_)) ==
      s"$lost (on node-1)")
    val idle =
      "org.apache.spark.api.python.PythonWorkerException: Python worker process terminated due to idle timeout\n" +
        "\tat org.apache.spark.api.python.X.read(X.scala:886)\n"
    assert(FailureText.ofTask(idle, _ => None) ==
      "Python worker process terminated due to idle timeout " +
      "(spark.python.worker.idleTimeoutSeconds, spark.python.worker.killOnIdleTimeout)")
    val task =
      "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: " +
        "Lost task 0.3 in stage 1.0 (TID 9) (node-1 executor 3): "
    assert(FailureText.of(new SparkException(task + lost + "\nDriver stacktrace:")) == task + lost)
    assert(FailureText.of(new SparkException(task +
        "a.b.Odd: outer\n\tat a.b.C(D.scala:1)\nCaused by: java.io.IOException: inner\n\tat x\n\t... 3 more\n")) ==
      "a.b.Odd: outer: java.io.IOException: inner")
    val python =
      s"org.apache.spark.api.python.PythonException: ${worker}RuntimeError: no package\n\n\tat x.y\n"
    assert(FailureText.ofTask(python, _ => None) ==
      "Spark's Python worker raised RuntimeError: no package")
  }

  test("a long text is cut, and one that repeats another is left out") {
    val long = new RuntimeException("x" * 5000, new IllegalStateException("why"))
    assert(FailureText.of(long).length < 1000)
    assert(FailureText.of(long).endsWith("why"))
    assert(FailureText.of(new RuntimeException(inner)) == inner.toString)
  }
}

private object FailureTextSuite {
  val worker: String =
    """Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/worker.py", line 3386, in main
    process()
"""
}
