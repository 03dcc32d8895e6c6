"""One call from PySpark: start ranks, supply a DataFrame to them, return their result.

    from supply.spark import Supplier

    def train(data, learning_rate):
        model = DDP(Net())
        for epoch in data.epochs():
            for batch in epoch:
                ...
        return model.module.state_dict()

    state = Supplier(ranks=4).run(train, df, columns=["features", "label"], batch_size=64, epochs=10, learning_rate=0.1)

Or as a stage of pyspark.ml: TorchEstimator(...).fit(df). docs/ONE-CALL.md is the guide.

Or routines of MPI libraries on the rows of a DataFrame: Ranks(spark, n=4). docs/OFFLOAD.md is the guide.
"""

from supply.errors import RankError, SupplierError
from supply.ranks.current import data
from supply.spark.estimator import TorchEstimator
from supply.spark.ranks import Ranks
from supply.spark.results import release
from supply.spark.run_result import RunResult
from supply.spark.spark_session import jars, session
from supply.spark.supplier import Supplier
from supply.spark.torch_model import TorchModel

__all__ = [
    "RankError",
    "Ranks",
    "RunResult",
    "Supplier",
    "SupplierError",
    "TorchEstimator",
    "TorchModel",
    "data",
    "jars",
    "release",
    "session",
]
