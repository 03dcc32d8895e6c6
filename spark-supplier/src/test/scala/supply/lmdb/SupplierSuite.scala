package supply.lmdb

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{PairHeldException, RankEndedException, RankException, SourceException}

final class SupplierSuite extends AnyFunSuite {
  test("the exit status is 3 if a rank is the cause, otherwise 1") {
    Seq(new RankException("it stalled"), new RankEndedException("it died")).foreach(failure =>
      assert(Supplier.exitStatus(failure) == 3))
    Seq(new PairHeldException("an attempt holds it"), new SourceException("it is gone"))
      .foreach(failure => assert(Supplier.exitStatus(failure) == 1))
  }
}
