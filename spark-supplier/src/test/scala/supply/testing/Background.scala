package supply.testing

import java.util.concurrent.{Callable, ExecutionException, Executors, Future, TimeUnit}

/** Work in a thread of its own, while the test does something else. */
object Background {

  def inBackground[A](body: => A): Future[A] = {
    val executor = Executors.newSingleThreadExecutor()
    try executor.submit(new Callable[A] { def call(): A = body })
    finally executor.shutdown()
  }

  /** Waits for the result, at most a minute. */
  def result[A](future: Future[A]): A =
    try future.get(60, TimeUnit.SECONDS)
    catch { case e: ExecutionException => throw e.getCause }
}
