package supply.pair

import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.scalatest.funsuite.AnyFunSuite

class TimeLimitSuite extends AnyFunSuite {
  private val soon = 0.05

  private def withGuard(body: (TimeLimit.Guard, CountDownLatch) => Unit): Unit = {
    val woken = new CountDownLatch(1)
    body(new TimeLimit.Guard(woken.countDown()), woken)
  }

  test("a call that blocks past its limit is woken") {
    withGuard((guard, woken) =>
      guard(new TimeLimit(soon))(assert(woken.await(30, TimeUnit.SECONDS))))
  }

  test("a call that ends in time is left alone, and the next one has a limit of its own") {
    withGuard { (guard, woken) =>
      assert(guard(new TimeLimit(soon))(7) == 7)
      assert(!woken.await(200, TimeUnit.MILLISECONDS))
      guard(new TimeLimit(soon))(assert(woken.await(30, TimeUnit.SECONDS)))
    }
  }

  test("the check of an earlier call does not end a later one, whose limit it takes over") {
    withGuard { (guard, woken) =>
      guard(new TimeLimit(soon))(())
      guard(new TimeLimit(0.4))(assert(!woken.await(200, TimeUnit.MILLISECONDS) && woken.await(30,
          TimeUnit.SECONDS)))
    }
  }

  test("a call that fails is over, too") {
    withGuard { (guard, woken) =>
      intercept[IllegalStateException](guard(new TimeLimit(soon))(throw new IllegalStateException))
      assert(!woken.await(200, TimeUnit.MILLISECONDS))
    }
  }
}
