"""The prediction of a module as a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql.types import ArrayType, DoubleType, FloatType

from spark_supplier.node.environment import path_entries

if TYPE_CHECKING:
    import torch


def prediction_udf(module: torch.nn.Module, size: int, is_scalar: bool, batch_size: int) -> Any:
    """A function of a column of array<float> of that size. is_scalar: a prediction is a double, else an array<float>.

    The module gets at most batch_size rows at once.
    """
    # Tasks import its classes from where ranks do.
    content, path = cloudpickle.dumps(module), path_entries()

    def load() -> Any:
        import pickle
        import sys

        import torch

        sys.path += [entry for entry in path if entry not in sys.path]
        module = pickle.loads(content).eval()

        def predict(features: Any) -> Any:
            with torch.no_grad():
                output = module(torch.from_numpy(features)).reshape(len(features), -1).numpy()
            return output[:, 0].astype("float64") if is_scalar else output

        return predict

    kind = DoubleType() if is_scalar else ArrayType(FloatType())
    return predict_batch_udf(load, return_type=kind, batch_size=batch_size, input_tensor_shapes=[[size]])
