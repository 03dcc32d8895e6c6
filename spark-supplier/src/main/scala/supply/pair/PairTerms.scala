package supply.pair

import supply.core.{ConfigException, FailPoint}
import supply.protocol.{EpochCounts, Exchange, Layout, Schema}

/** What a task checks and tells its rank before the first block: A6 of proto/PROTOCOL.md. */
private[pair] trait PairTerms {
  def name: String
  protected def file: MappedFile

  /** Whether no attempt has published anything. */
  def isUntouched: Boolean

  /** Tells the rank which columns its blocks have. (A6) */
  def writeOrCheckSchema(schema: Schema): Unit = {
    if (schema.hasViews && !file.acceptsReferences)
      throw new ConfigException(
        s"$name: its rank cannot read values in place (--in-place, inPlace): its libsupply implements contract " +
          s"${Layout.versionText(file.version)}. Build it from this release, or supply without that option")
    file.writeOrCheckSchema(schema)
    FailPoint("A6")
  }

  /** Tells the rank what it must exchange with the others; comes before the schema. (A6) */
  def writeOrCheckExchange(exchange: Exchange): Unit = {
    if (exchange != Exchange.Off && !file.acceptsExchange)
      throw new ConfigException(
        s"$name: its rank's program does not exchange elements (--shuffle all; its libsupply implements contract " +
          s"${Layout.versionText(file.version)}): open its pair with options.exchange and supply_exchange_open() " +
          "(Python: exchange='supplied'), or supply without --shuffle all")
    file.writeOrCheckExchange(exchange)
  }

  /** Refuses a rank that cannot read resident files. (A6) */
  def requireBlockFiles(): Unit = if (!file.acceptsBlockFiles)
    throw new ConfigException(
      s"$name: its rank cannot read resident files (--resident-folder): its libsupply implements contract " +
        s"${Layout.versionText(file.version)}. Build it from this release, or supply without that option")

  /** Tells the rank its plan; refuses a position that it saved under another plan. (A6) */
  def bindPlan(fingerprint: Long): Unit = {
    if (file.startPlan != 0 && file.startPlan != fingerprint)
      throw new ConfigException(
        s"$name: the rank wants to resume at a position that it saved in a run with other data or " +
          s"${PairTerms.PlanOptions}: give the same ones, or start the rank without the position")
    if (!isUntouched && file.plan != fingerprint)
      throw new ConfigException(
        s"$name: another run has begun to supply this rank, with other data or " +
          s"${PairTerms.PlanOptions}: start the rank anew")
    file.plan = fingerprint
  }

  /** Removes the counts of a run that has published nothing. (A6) */
  def forgetCounts(): Unit = if (isUntouched) file.forgetCounts()

  /** Tells the rank what each of its whole epochs has. */
  def announceCounts(counts: EpochCounts): Unit = file.setCounts(counts)

  /** Whether the rank has asked for what follows the first END_OF_EPOCH of this pair. */
  def hasPassedAnEpoch: Boolean = file.acknowledged > 0

  /** The plan of the published blocks, or else of the rank's position; 0: neither has one. */
  def plan: Long = if (isUntouched) file.startPlan else file.plan

  def plan_=(fingerprint: Long): Unit = file.plan = fingerprint
}

private object PairTerms {
  /** The options that a plan follows from, apart from the data. */
  private val PlanOptions =
    "--partitions, --ranks, --seed, --shuffle (with --exchange-fraction), --uneven (with --block-elements) or --resume-positions"
}
