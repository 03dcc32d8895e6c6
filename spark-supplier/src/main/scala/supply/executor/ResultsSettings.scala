package supply.executor

import supply.core.{ConfigException, Deadline}
import supply.pair.ConfigFiles
import supply.plan.Hostfile
import supply.results.ResultPath

/** Which result a user wants to read: ResultsOptions says what each option means. */
private[supply] final case class ResultsSettings(
    name: String,
    ranks: Int,
    configFiles: ConfigFiles,
    hosts: Option[String],
    folder: Option[String],
    timeout: Double) {
  /** The places of the ranks. Throws a ConfigException if a setting or the host file is wrong. */
  def readHosts(): Hostfile = {
    ResultPath.requireName(name)
    if (ranks < 1) throw new ConfigException(s"ranks is $ranks: it must be at least 1")
    Deadline.require("timeout", timeout)
    folder.filterNot(_.startsWith("/")).foreach { relative =>
      throw new ConfigException(s"results-folder '$relative' is not an absolute path")
    }
    if (hosts.isEmpty) configFiles.read(ranks)
    Hostfile(hosts, ranks)
  }
}
