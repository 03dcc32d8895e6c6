package supply.core

import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.scalatest.funsuite.AnyFunSuite

class DeadlineSuite extends AnyFunSuite {
  private val soon = 0.05

  private def withGuard(body: (Deadline.Guard, CountDownLatch) => Unit): Unit = {
    val woken = new CountDownLatch(1)
    body(new Deadline.Guard(woken.countDown()), woken)
  }

  test("a call that blocks past its deadline is woken") {
    withGuard((guard, woken) =>
      guard(new Deadline(soon))(assert(woken.await(30, TimeUnit.SECONDS))))
  }

  test("a call that ends in time is not woken, and the next one has its own deadline") {
    withGuard { (guard, woken) =>
      assert(guard(new Deadline(soon))(7) == 7)
      assert(!woken.await(200, TimeUnit.MILLISECONDS))
      guard(new Deadline(soon))(assert(woken.await(30, TimeUnit.SECONDS)))
    }
  }

  test("the check of an earlier call does not wake a later one before its deadline") {
    withGuard { (guard, woken) =>
      guard(new Deadline(soon))(())
      guard(new Deadline(0.4))(assert(!woken.await(200, TimeUnit.MILLISECONDS) && woken.await(30,
          TimeUnit.SECONDS)))
    }
  }

  test("a call that has failed is not woken") {
    withGuard { (guard, woken) =>
      intercept[IllegalStateException](guard(new Deadline(soon))(throw new IllegalStateException))
      assert(!woken.await(200, TimeUnit.MILLISECONDS))
    }
  }

  test("the timer keeps nothing of a guard that is closed, however late its deadline is") {
    val before = Deadline.timer.getQueue.size
    Seq(1e9, 864000, 60).foreach { seconds =>
      val guards = Seq.fill(10)(new Deadline.Guard(()))
      guards.foreach(_(new Deadline(seconds))(()))
      assert(Deadline.timer.getQueue.size >= guards.size)
      guards.foreach(_.close())
      guards.foreach(_.close())
      assert(Deadline.timer.getQueue.size <= before)
    }
    val unused = new Deadline.Guard(())
    unused.close()
  }

  test("a wait checks once more after its deadline has passed") {
    val deadline = new Deadline(soon)
    def suspended(): Unit = while (!deadline.passed) Thread.sleep(1)
    var probes = 0
    val found = deadline.find(everyMillis = 1) {
      probes += 1
      if (probes == 1) { suspended(); None }
      else Some(probes)
    }
    assert(found.contains(2))
  }

  test("a wait whose condition does not hold ends after its deadline") {
    val deadline = new Deadline(soon)
    assert(!deadline.poll(everyMillis = 1)(false) && deadline.passed)
  }
}
