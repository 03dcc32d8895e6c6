package supply.plan

import java.net.InetAddress
import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch, TimeUnit}

import org.scalatest.funsuite.AnyFunSuite

import supply.core.Deadline

/** Which host of Spark is which one of the host file, with name servers that answer or do not. */
class HostNamesSuite extends AnyFunSuite {
  private def hosts(names: String*) =
    Hostfile(names.map(name => RankPlacement(Some(name), 0)).toIndexedSeq)

  private def address(last: Int) = InetAddress.getByAddress(Array[Byte](10, 0, 0, last.toByte))

  private val asked = new ConcurrentLinkedQueue[String]

  /** Name servers that know the hosts n1, n2 and n3 with two names each. */
  private def answer(name: String): Set[InetAddress] = {
    asked.add(name)
    name match {
      case "n1" | "10.0.0.1" => Set(address(1))
      case "n2" | "other-name-of-n2" => Set(address(2))
      case "n3" => Set(address(3))
      case _ => Set.empty
    }
  }

  test("hosts with two names are found by their addresses, and each name is looked up once") {
    asked.clear()
    val names = new HostNames(limitSeconds = 30)(answer)
    val file = hosts("n1", "n2", "n4")
    (1 to 3).foreach { _ =>
      val known = names.known(file, Seq("10.0.0.1", "other-name-of-n2", "n5"))
      assert(known.ranksOn("10.0.0.1") == Seq(0))
      assert(known.ranksOn("other-name-of-n2") == Seq(1))
      assert(known.ranksOn("n5").isEmpty && known.ranksOn("n1") == Seq(0))
    }
    assert(asked.toArray.toSeq.map(_.toString).sorted == Seq("10.0.0.1", "n1", "n2", "n4", "n5",
      "other-name-of-n2"))
  }

  test("names that are equal, or short forms, are not looked up") {
    val names =
      new HostNames(limitSeconds = 30)(name => throw new AssertionError(s"look-up of $name"))
    def ranksOn(name: String, file: String*) =
      names.known(hosts(file: _*), Seq("n1", "n2.cluster.test", name)).ranksOn(name)
    assert(ranksOn("n2.cluster.test", "n1", "n2") == Seq(1))
    assert(ranksOn("n3", "n1", "n2.cluster.test") == Nil)
    assert(ranksOn("n1", "n1") == Seq(0))
  }

  for (count <- Seq(3, 6))
    test(s"$count hosts without an answer are waited for once, all together, and not again") {
      val answers = new CountDownLatch(1)
      val names = new HostNames(limitSeconds = 0.5)({ name =>
        answers.await()
        answer(name)
      })
      val file = hosts((1 to count).map(i => s"n$i"): _*)
      val started = System.nanoTime()
      (1 to 100).foreach(_ =>
        assert(names.known(file, Seq("10.0.0.1", "elsewhere")).ranksOn("10.0.0.1").isEmpty))
      // In a hundred calls, each of 2 names or more: one after the other they would take minutes.
      assert((System.nanoTime() - started) / 1e9 < 25)
      // Late answers are used.
      answers.countDown()
      assert(new Deadline(30).poll(20)(
          names.known(file, Seq("10.0.0.1", "elsewhere")).ranksOn("10.0.0.1") == Seq(0)))
    }

  test("a slow name delays no other one") {
    val answers = new CountDownLatch(1)
    val names = new HostNames(limitSeconds = 1)({ name =>
      if (name == "n2") answers.await(60, TimeUnit.SECONDS)
      answer(name)
    })
    val known = names.known(hosts("n1", "n2"), Seq("10.0.0.1", "other-name-of-n2"))
    assert(known.ranksOn("10.0.0.1") == Seq(0) && known.ranksOn("other-name-of-n2").isEmpty)
    answers.countDown()
  }
}
