package supply.bench

import supply.pair.Pair

/**
 * What a figure is compared with, measured withMappedFile it in the same task: a bound of the
 * hardware, or another way to send.
 */
private[bench] trait Limit extends AutoCloseable {
  def measure(): Measured
}

private[bench] object Limit {

  /**
   * Of one pair, from the words of [[Cycle.limits]]; `cached` gives the elements that Spark has
   * cached for its rank.
   */
  def of(words: Seq[String], pair: Pair, cached: => CachedElements): Limit = words match {
    case Seq("put") => new PutAlone(pair, cached)
    case "program" +: command => new ProgramLimit(command)
    case Seq("in-place", program) => new ProgramLimit(Seq(program, pair.paths.mappedFile))
    case Seq("tcp-rows", port) => new TcpPeer(port.toInt, cached, rowByRow = true)
    case Seq("tcp-chunks", port) => new TcpPeer(port.toInt, cached, rowByRow = false)
    case Seq("files-mapped", port, folder) =>
      new FilePeer(port.toInt, folder, cached, mapped = true)
    case Seq("files-written", port, folder) =>
      new FilePeer(port.toInt, folder, cached, mapped = false)
    case _ => throw new IllegalArgumentException(s"no limit '${words.mkString(" ")}'")
  }
}
