"""The prediction of a module as a column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy
import pandas
from pyspark.sql.functions import pandas_udf

if TYPE_CHECKING:
    import torch


def prediction_udf(module: torch.nn.Module, is_scalar: bool) -> Any:
    """A function of a column of array<float>. is_scalar: a prediction is a double, else an array<float>."""

    def predict(batches: Iterator[pandas.Series]) -> Iterator[pandas.Series]:
        import torch

        module.eval()
        with torch.no_grad():
            for batch in batches:
                features = torch.from_numpy(numpy.stack(batch.to_list()).astype(numpy.float32))
                output = module(features).reshape(len(features), -1).numpy()
                yield pandas.Series(output[:, 0].astype(numpy.float64) if is_scalar else list(output))

    return pandas_udf(predict, "double" if is_scalar else "array<float>")
