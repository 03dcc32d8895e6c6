"""What goes wrong. Each text is libsupply's own: it names the pair, the file and the setting to change."""


class SupplyError(RuntimeError):
    """Any failure of libsupply. `status` is its name there, as "SUPPLY_ERROR_TIMEOUT"."""

    status = "SUPPLY_ERROR_ARGUMENT"


class ConfigError(SupplyError):
    """Config files, options or paths are missing or wrong."""


class InUseError(SupplyError):
    """A living process owns this pair."""


class NoSpaceError(SupplyError):
    """The file system has no room for the mapped file."""


class SupplyTimeoutError(SupplyError, TimeoutError):
    """The task did not come, died, or stalled for longer than the limit."""


class SparkError(SupplyError):
    """Spark gave up; the text is its own."""


class ContractError(SupplyError):
    """The task wrote what the contract forbids, or a newer one has what this version does not know."""


class AllHeldError(SupplyError):
    """Every block of the ring is held, by blocks and views that are still referenced: nothing can come until one goes."""


class ColumnError(SupplyError, TypeError):
    """This column can not be had in the asked form without a copy. The text says in which one it can."""

    status = "SUPPLY_OK"


_BY_STATUS = {
    "SUPPLY_ERROR_CONFIG": ConfigError,
    "SUPPLY_ERROR_IN_USE": InUseError,
    "SUPPLY_ERROR_NO_SPACE": NoSpaceError,
    "SUPPLY_ERROR_TIMEOUT": SupplyTimeoutError,
    "SUPPLY_ERROR_SPARK": SparkError,
    "SUPPLY_ERROR_CONTRACT": ContractError,
    "SUPPLY_ERROR_ALL_HELD": AllHeldError,
}


def raise_status(status: str, text: str) -> None:
    """Called by the extension module."""
    error = _BY_STATUS.get(status, SupplyError)(text)
    error.status = status
    raise error
