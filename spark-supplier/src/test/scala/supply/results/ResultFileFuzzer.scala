package supply.results

import supply.testing.Fuzzed

/** A rank may write anything into its result. Spark refuses it or reads it, and nothing else. */
object ResultFileFuzzer {
  def fuzzerTestOneInput(input: Array[Byte]): Unit =
    Fuzzed.refusedOrRead(ReadBlocks.rows(Fuzzed.file("fuzzed.r.result", input)))
}
