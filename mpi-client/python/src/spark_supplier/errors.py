"""The exceptions. Each text says what is wrong, where, and what to do; most texts of a rank come from libsupply.

Every exception of this package is a SupplyError:

* On a rank its class says what failed. A wrong option or argument is a ConfigError, which is a ValueError, too.
* On the driver it is a RunError, for a wrong argument as for a run that failed. A wrong argument is a RunConfigError,
  which is a ValueError, too. A wrong param of an estimator is a ConfigError: pyspark.ml raises ValueError for these.
* If a limit has passed, it is a SupplyTimeoutError on both sides.

Python's own protocols keep Python's exceptions: TypeError for an option that does not exist and for a len() that is not
known, KeyError for a column that a block does not have, AttributeError for a name. Exceptions of your own functions in
your own process pass through, and so do Spark's.
"""

from __future__ import annotations

import pickle
from typing import Any


class SupplyError(RuntimeError):
    """Any failure of libsupply. `status` is its name in supply.h, for example "SUPPLY_ERROR_TIMEOUT"."""

    status = "SUPPLY_ERROR_ARGUMENT"


class ConfigError(SupplyError, ValueError):
    """Config files, options, arguments or paths are missing or wrong."""

    status = "SUPPLY_ERROR_CONFIG"


class InUseError(SupplyError):
    """A living process owns this pair."""


class NoSpaceError(SupplyError):
    """The file system has too little space for the mapped file or a result."""


class SupplyOSError(SupplyError, OSError):
    """A system call failed. `errno` says how."""


class SupplyTimeoutError(SupplyError, TimeoutError):
    """A limit has passed: the task did not attach, died, or supplied nothing, or another rank did not answer."""


class SparkError(SupplyError):
    """Spark's run failed. The text is Spark's."""


class ContractError(SupplyError):
    """The task broke the contract, or the schema has a type that this version does not know."""


class SupplyMemoryError(SupplyError, MemoryError):
    """Out of memory."""


class RingFullError(SupplyError):
    """Blocks and views that are still referenced occupy the whole ring. Drop one of them to receive the next block."""


class ColumnError(SupplyError, TypeError):
    """This column cannot be read, or written to a result, in this form. The text names a form that works."""

    status = "SUPPLY_OK"


class RunError(SupplyError):
    """Anything of spark_supplier and spark_supplier.ml: wrong input, or a run that could not start or that failed."""


class RunConfigError(RunError, ConfigError):
    """A wrong option or argument of spark_supplier, on the driver: a ValueError, too."""


class RunTimeoutError(RunError, SupplyTimeoutError):
    """A run that failed because something took longer than a limit. The text names the option that sets the limit."""


class RankError(RunError):
    """A rank raised an exception, or its process ended. `__cause__` is the rank's exception, if it could be pickled.

    rank, host: which rank, and where it ran.
    """

    def __init__(self, text: str, rank: int, host: str) -> None:
        super().__init__(text)
        self.rank = rank
        self.host = host

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            pickle.dumps(self.__cause__)
        except Exception:
            return RankError, (str(self), self.rank, self.host), vars(self)
        return RankError, (str(self), self.rank, self.host), {**vars(self), "__cause__": self.__cause__}


_BY_STATUS = {
    "SUPPLY_ERROR_CONFIG": ConfigError,
    "SUPPLY_ERROR_IN_USE": InUseError,
    "SUPPLY_ERROR_NO_SPACE": NoSpaceError,
    "SUPPLY_ERROR_SYSTEM": SupplyOSError,
    "SUPPLY_ERROR_TIMEOUT": SupplyTimeoutError,
    "SUPPLY_ERROR_SPARK": SparkError,
    "SUPPLY_ERROR_CONTRACT": ContractError,
    "SUPPLY_ERROR_MEMORY": SupplyMemoryError,
    "SUPPLY_ERROR_ALL_HELD": RingFullError,
}


def raise_status(status: str, text: str, errno: int) -> None:
    """Raises the exception of that status. The extension module calls it. errno: 0 if no system call failed."""
    error = _BY_STATUS.get(status, SupplyError)(text)
    error.status = status
    if isinstance(error, OSError) and errno:
        error.errno = errno
    try:
        raise error
    finally:
        # Its traceback has this frame, and so those of the callers. They would keep their blocks until Python looks for
        # cycles.
        del error
