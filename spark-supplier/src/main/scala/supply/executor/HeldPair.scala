package supply.executor

/**
 * A task whose pair another attempt has held for the whole time limit. The driver knows whether the
 * other one still runs.
 */
private[supply] object HeldPair extends UncountedEnd("supply-held: ")
