package supply.bench

import supply.pair.Pair

/** A reference for the cycle's figures, measured in the same task. */
private[bench] trait Baseline extends AutoCloseable {
  def measure(): Measured
}

private[bench] object Baseline {
  /** What `words` of [[Cycle.baselines]] name; `cached` is what Spark caches for the rank. */
  def of(words: Seq[String], pair: Pair, cached: => CachedElements): Baseline = words match {
    case Seq("memcpy") => new MemcpyBaseline(pair, cached)
    case "program" +: command => new ProgramBaseline(command)
    case Seq("in-place", program) => new ProgramBaseline(Seq(program, pair.paths.mappedFile))
    case Seq("tcp-rows", port) => new TcpBaseline(port.toInt, cached, rowByRow = true)
    case Seq("tcp-chunks", port) => new TcpBaseline(port.toInt, cached, rowByRow = false)
    case Seq("files-mapped", port, folder) =>
      new FileBaseline(port.toInt, folder, cached, mapped = true)
    case Seq("files-written", port, folder) =>
      new FileBaseline(port.toInt, folder, cached, mapped = false)
    case _ => throw new IllegalArgumentException(s"no baseline '${words.mkString(" ")}'")
  }
}
