"""The prediction of a module as a column."""

from __future__ import annotations

import hashlib
import pathlib
import tempfile
import threading
import weakref
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType

from spark_supplier.driver.sessions import is_of_connect
from spark_supplier.node.environment import path_entries

if TYPE_CHECKING:
    import torch


# A plan of Spark Connect has at most 128 MiB.
_MOST_IN_PLAN = 16 << 20
# By sessions of Spark Connect: the names of the files that they have.
_sent: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()
_sending = threading.Lock()


def _send(spark: Any, content: bytes) -> str:
    """Sends it to the server, for this session. The name of the file that its tasks find."""
    name = f"supply-model-{hashlib.sha256(content).hexdigest()}"
    with _sending:
        if name not in _sent.setdefault(spark, set()):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, name)
                path.write_bytes(content)
                spark.addArtifacts(str(path), file=True)
            _sent[spark].add(name)
    return name


def prediction_udf(
    spark: Any, module: torch.nn.Module, size: int, is_scalar: bool, fields: list[str] | None, batch_size: int
) -> Any:
    """A function of a column of arrays of that size. The module gets at most batch_size rows at once.

    is_scalar: it has one output. fields: of what is returned for classes: raw, probability and prediction. None: a
    double if it has one output, else an array<float>.
    """
    # Tasks import its classes from where ranks do.
    content, path = cloudpickle.dumps(module), path_entries()
    file = None
    if is_of_connect(spark) and len(content) > _MOST_IN_PLAN:
        file, content = _send(spark, content), b""

    def load() -> Any:
        import pathlib
        import pickle
        import sys

        import torch
        from pyspark import SparkFiles

        sys.path += [entry for entry in path if entry not in sys.path]
        module = pickle.loads(content if file is None else pathlib.Path(SparkFiles.get(file)).read_bytes()).eval()

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
