package supply.executor

import supply.protocol.Schema
import supply.results.ResultPath

/** A rank's sealed result: where it lies, and what its header says. */
private[supply] final case class FoundResult(rank: Int, host: String, path: ResultPath,
    generation: Long, run: Long, blocks: Int, elements: Long, bytes: Long, schema: Schema)
