package supply.testing

import org.scalatest.Tag

/** A test that `make test` leaves out and `make test-nightly PART=scala` runs. */
object LongTest extends Tag("long")
