package supply.core

import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.scalatest.funsuite.AnyFunSuite

class ThreadsSuite extends AnyFunSuite {

  private def awaited(latch: CountDownLatch): Boolean = latch.await(30, TimeUnit.SECONDS)

  test("work that fails is repeated, also after a fatal error") {
    Seq(new IllegalStateException("for the log"), new OutOfMemoryError("for the log"),
      new NoClassDefFoundError("for the log")).foreach { error =>
      val runs = new CountDownLatch(3)
      val timer = Threads.repeat("supply-test", 1) {
        runs.countDown()
        throw error
      }
      try assert(awaited(runs), error)
      finally timer.close()
    }
  }

  test("closing interrupts the work") {
    val started, interrupted = new CountDownLatch(1)
    val timer = Threads.repeat("supply-test", 1) {
      started.countDown()
      try Thread.sleep(60000)
      catch { case _: InterruptedException => interrupted.countDown() }
    }
    assert(awaited(started))
    timer.close()
    assert(awaited(interrupted))
  }

  test("work that closes its own timer is not interrupted") {
    val made, ended = new CountDownLatch(1)
    var timer: AutoCloseable = null
    timer = Threads.repeat("supply-test", 1) {
      assert(awaited(made))
      timer.close()
      if (!Thread.currentThread().isInterrupted) ended.countDown()
    }
    made.countDown()
    assert(awaited(ended))
  }
}
