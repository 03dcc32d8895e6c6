package supply.driver

import picocli.CommandLine.{Option => Opt}

/** The options that name the ranks' pairs, of each run and of each read of results. */
private[supply] final class PairOptions {
  @Opt(
    names = Array("--mapped-files"),
    paramLabel = "FILE",
    required = true,
    description = Array(
      "mapped-files.conf: line i names the mapped file of local rank i. The ranks use the same file."))
  var mappedFiles: String = _

  @Opt(
    names = Array("--named-pipes"),
    paramLabel = "FILE",
    required = true,
    description = Array(
      "named-pipes.conf: line i names the request pipe and the notification pipe of local rank i. The ranks use the " +
        "same file."))
  var namedPipes: String = _

  @Opt(
    names = Array("--hosts"),
    paramLabel = "FILE",
    description = Array(
      "The host file of mpirun, in Open MPI's format (host slots=n): it says on which node each rank is. " +
        "Default: all ranks are on this node."))
  var hosts: String = _
}
