package supply.testing

import org.scalacheck.Shrink
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/**
 * ScalaCheck's forAll, which shows a failing case as it was generated. Shrinking it would leave its
 * generator's range, and for arrays of bytes it takes hours.
 */
trait AllCases extends ScalaCheckPropertyChecks {
  protected implicit def asGenerated[A]: Shrink[A] = Shrink.shrinkAny
}
