package supply.core

/**
 * What ends a run with a line for the user: what is wrong, where, and what to do.
 *
 * `retry` says whether another attempt of the same task may do better. The cause travels from a
 * task to the driver, and from there to every rank.
 */
sealed abstract class SupplyException(message: String, cause: Throwable, val retry: Boolean)
    extends RuntimeException(message, cause)

/** Options or config files are missing or wrong. */
final class ConfigException(message: String, cause: Throwable = null)
    extends SupplyException(message, cause, retry = false)

/** The source can not be read. */
final class SourceException(message: String, cause: Throwable = null)
    extends SupplyException(message, cause, retry = false)

/** The cluster does not have what the run needs. */
final class PlacementException(message: String)
    extends SupplyException(message, null, retry = false)

/** A task has landed on another node than its rank's. */
final class MisplacedException(message: String) extends SupplyException(message, null, retry = true)

/** The rank did not come, or stalled. */
sealed class RankException(message: String) extends SupplyException(message, null, retry = false)

/** Another attempt of the same task holds the pair. */
final class PairHeldException(message: String) extends RankException(message)

/** The rank gave up or died before it had all its data. */
final class RankEndedException(message: String)
    extends SupplyException(message, null, retry = false)

/** The mapped file or a request is not what proto/PROTOCOL.md says. */
final class ContractException(message: String) extends SupplyException(message, null, retry = false)

/** The Supplier was asked to end in the middle of the run. */
final class SupplierEndedException(message: String)
    extends SupplyException(message, null, retry = false)

/** An element does not fit into a block. */
final class ElementTooLargeException(message: String)
    extends SupplyException(message, null, retry = false)

/** The pair could not be opened or used for a reason of the system's. */
final class PairException(message: String, cause: Throwable = null)
    extends SupplyException(message, cause, retry = true)
