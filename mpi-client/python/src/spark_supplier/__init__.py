"""Train on the rows of a Spark DataFrame in processes beside Spark, through shared memory.

    from spark_supplier import Rows, Supplier, session

    def train(data, learning_rate):                     # runs in each rank, under torch.distributed
        model = DDP(Net())
        for epoch in data.epochs():
            for batch in epoch:
                ...
        return model.module.state_dict()

    spark = session()
    state = Supplier(ranks=4).run(train, Rows(df, batch_size=64, epochs=10), learning_rate=0.1)

`spark_supplier.ml` has the same as stages of pyspark.ml, `spark_supplier.offload` routines of MPI libraries on the rows
of a DataFrame, `spark_supplier.ranks` and `spark_supplier.torch` the side of a rank in a program of your own. Importing
this module loads neither PySpark nor PyTorch: each name is loaded when it is used. docs/PYTHON-API.md lists the public
names; other names and modules may change.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_supplier import hf, ml, offload, ranks, testing, torch, xgboost
    from spark_supplier._core import contract_version
    from spark_supplier._core import version as __version__
    from spark_supplier.driver.jar import jars
    from spark_supplier.driver.results import RunResult
    from spark_supplier.driver.spark_session import session
    from spark_supplier.driver.statistics import RunStatistics
    from spark_supplier.driver.supplier import Supplier
    from spark_supplier.errors import (
        ColumnError,
        ConfigError,
        ContractError,
        InUseError,
        NoSpaceError,
        RankError,
        RingFullError,
        RunConfigError,
        RunError,
        RunTimeoutError,
        SparkError,
        SupplyError,
        SupplyMemoryError,
        SupplyOSError,
        SupplyTimeoutError,
    )
    from spark_supplier.node.elsewhere import connect
    from spark_supplier.node.job import data
    from spark_supplier.node.rank_data import RankData
    from spark_supplier.settings import Cache, Checkpoints, Elsewhere, Mpirun, Rows, Shuffle

_MODULES = {
    "_core": ("contract_version", "__version__"),
    "driver.jar": ("jars",),
    "driver.results": ("RunResult",),
    "driver.spark_session": ("session",),
    "driver.statistics": ("RunStatistics",),
    "driver.supplier": ("Supplier",),
    "errors": (
        "ColumnError",
        "ConfigError",
        "ContractError",
        "InUseError",
        "NoSpaceError",
        "RankError",
        "RingFullError",
        "RunConfigError",
        "RunError",
        "RunTimeoutError",
        "SparkError",
        "SupplyError",
        "SupplyMemoryError",
        "SupplyOSError",
        "SupplyTimeoutError",
    ),
    "node.elsewhere": ("connect",),
    "node.job": ("data",),
    "node.rank_data": ("RankData",),
    "settings": ("Cache", "Checkpoints", "Elsewhere", "Mpirun", "Rows", "Shuffle"),
}
_SUBMODULES = ("hf", "ml", "offload", "ranks", "testing", "torch", "xgboost")
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Cache",
    "Checkpoints",
    "ColumnError",
    "ConfigError",
    "ContractError",
    "Elsewhere",
    "InUseError",
    "Mpirun",
    "NoSpaceError",
    "RankData",
    "RankError",
    "RingFullError",
    "Rows",
    "RunConfigError",
    "RunError",
    "RunResult",
    "RunStatistics",
    "RunTimeoutError",
    "Shuffle",
    "SparkError",
    "Supplier",
    "SupplyError",
    "SupplyMemoryError",
    "SupplyOSError",
    "SupplyTimeoutError",
    "__version__",
    "connect",
    "contract_version",
    "data",
    "hf",
    "jars",
    "ml",
    "offload",
    "ranks",
    "session",
    "testing",
    "torch",
    "xgboost",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{module}"), "version" if name == "__version__" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
