"""One call from PySpark: start ranks, supply a DataFrame to them, return their result.

    from supply.spark import Supplier

    def train(data, learning_rate):
        model = DDP(Net())
        for epoch in data.epochs():
            for batch in epoch:
                ...
        return model.module.state_dict()

    state = Supplier(ranks=4).run(train, df, batch_size=64, epochs=10, kwargs={"learning_rate": 0.1})

Or as a stage of pyspark.ml: TorchEstimator(...).fit(df). docs/ONE-CALL.md is the guide.

Or routines of MPI libraries on the rows of a DataFrame: Ranks(spark, ranks=4). docs/OFFLOAD.md is the guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from supply.errors import RankError, RunError, RunTimeoutError
from supply.ranks.job import data
from supply.spark.class_loader import jars
from supply.spark.estimator import TorchEstimator
from supply.spark.matrix import Matrix
from supply.spark.ranks import Ranks
from supply.spark.results import RunResult, release
from supply.spark.spark_session import session
from supply.spark.statistics import RunStatistics
from supply.spark.supplier import Supplier
from supply.spark.torch_model import TorchModel

if TYPE_CHECKING:
    from supply.ranks.rank_data import RankData

__all__ = [
    "Matrix",
    "RankData",
    "RankError",
    "Ranks",
    "RunError",
    "RunResult",
    "RunStatistics",
    "RunTimeoutError",
    "Supplier",
    "TorchEstimator",
    "TorchModel",
    "data",
    "jars",
    "release",
    "session",
]


def __getattr__(name: str) -> Any:
    """RankData, the type of `data`, needs PyTorch, which a driver may lack."""
    if name == "RankData":
        from supply.ranks.rank_data import RankData

        return RankData
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
