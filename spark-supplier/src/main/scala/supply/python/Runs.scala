package supply.python

import supply.driver.UnwantedRuns

/** The runs of `Supplier.run`, by the names that they have in the local property supply.run. */
object Runs {
  /** All ranks have returned. The tasks of the run end without a failure when their ranks leave. */
  def end(name: String): Unit = UnwantedRuns.add(name)

  /** No job of the run is left. */
  def forget(name: String): Unit = UnwantedRuns.remove(name)
}
