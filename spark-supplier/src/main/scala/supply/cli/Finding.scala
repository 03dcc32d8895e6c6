package supply.cli

/**
 * A line of supply-doctor: what a check found, and what to do about it. `status`: ok, warning,
 * failed, or skipped if it cannot be judged.
 */
private[cli] final case class Finding(
    status: String, check: String, text: String, fix: String = "") {
  def line: String = Seq(status, check, text, fix).map(_.replaceAll("\\s", " ")).mkString("\t")
}
