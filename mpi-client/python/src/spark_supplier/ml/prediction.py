"""The prediction of a module as a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType

from spark_supplier.node.environment import path_entries

if TYPE_CHECKING:
    import torch


def prediction_udf(
    module: torch.nn.Module, size: int, is_scalar: bool, fields: list[str] | None, batch_size: int
) -> Any:
    """A function of a column of arrays of that size. The module gets at most batch_size rows at once.

    is_scalar: it has one output. fields: of what is returned for classes: raw, probability and prediction. None: a
    double if it has one output, else an array<float>.
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
                output = module(torch.from_numpy(features)).reshape(len(features), -1)
            if fields is None:
                return output[:, 0].double().numpy() if is_scalar else output.numpy()
            raw = output.double()
            scores = torch.cat([torch.zeros_like(raw), raw], 1) if is_scalar else raw
            # Pandas makes null of NaN.
            prediction = scores.argmax(1).double().masked_fill(scores.isnan().any(1), float("nan"))
            found = {
                "raw": torch.cat([-raw, raw], 1) if is_scalar else raw, "probability": scores.softmax(1),
                "prediction": prediction,
            }  # fmt: skip
            return {field: found[field].numpy() for field in fields}

        return predict

    kind = DoubleType() if is_scalar else ArrayType(FloatType())
    if fields is not None:
        kinds = {"prediction": DoubleType()}
        kind = StructType([StructField(field, kinds.get(field, ArrayType(DoubleType()))) for field in fields])
    return predict_batch_udf(load, return_type=kind, batch_size=batch_size, input_tensor_shapes=[[size]])
