package supply.core

/**
 * An error that ends a run, here and on every rank. Its message is one line for the user: what is
 * wrong, where, and what to do. `retry`: another attempt of the same task may succeed.
 */
sealed abstract class SupplyException(message: String, cause: Throwable, val retry: Boolean)
    extends RuntimeException(message, cause) {

  /** Whether a time limit of the user has passed: in Python such an error is a SupplyTimeoutError. */
  def isTimeout: Boolean = false
}

/** Options or config files are missing or wrong. */
final class ConfigException(message: String, cause: Throwable = null)
    extends SupplyException(message, cause, retry = false)

/** The source cannot be read. */
final class SourceException(message: String, cause: Throwable = null,
    override val isTimeout: Boolean = false)
    extends SupplyException(message, cause, retry = false)

/** The cluster does not have what the run needs. */
final class PlacementException(message: String, override val isTimeout: Boolean = false)
    extends SupplyException(message, null, retry = false)

/** A task runs on another node than its rank. */
final class MisplacedException(message: String) extends SupplyException(message, null, retry = true)

/** The rank did not open its pair, or stalled. */
final class RankException(message: String, override val isTimeout: Boolean = false)
    extends SupplyException(message, null, retry = false)

/** Another attempt of the same task, or another run, holds the pair. */
final class PairHeldException(message: String, override val isTimeout: Boolean = false)
    extends SupplyException(message, null, retry = false)

/** The rank failed or died before it had all its data. */
final class RankEndedException(message: String, override val isTimeout: Boolean = false)
    extends SupplyException(message, null, retry = false)

/** The mapped file or a request violates proto/PROTOCOL.md. */
final class ContractException(message: String) extends SupplyException(message, null, retry = false)

/** A program has cut a file that is mapped: whoever reads the memory gets SIGBUS. */
final class CutFileException(message: String) extends SupplyException(message, null, retry = false)

/** A result of ranks is no longer there. */
final class ResultGoneException(message: String, cause: Throwable = null)
    extends SupplyException(message, cause, retry = false)

/** The Supplier was asked to stop during the run. */
final class SupplierEndedException(message: String)
    extends SupplyException(message, null, retry = false)

/** An element does not fit into a block. */
final class ElementTooLargeException(message: String)
    extends SupplyException(message, null, retry = false)

/** The kernel does not map a file into memory. */
final class MappingException(message: String) extends SupplyException(message, null, retry = true)

/** A system error prevents opening or using the pair. */
final class PairException(message: String, cause: Throwable = null)
    extends SupplyException(message, cause, retry = true)
