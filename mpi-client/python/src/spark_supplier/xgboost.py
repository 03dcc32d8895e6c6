"""XGBoost on the rows that Spark supplies."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
from torch import distributed

from spark_supplier.errors import ConfigError
from spark_supplier.torch import Dataset, Epoch

__all__ = ["collective", "matrix"]


def matrix(
    data: Dataset | Epoch,
    features: str | Sequence[str],
    label: str | None = None,
    *,
    weight: str | None = None,
    **options: Any,
) -> Any:
    """An xgboost.QuantileDMatrix of this rank's rows of an epoch. With several ranks, call it within collective().

    XGBoost reads the rows several times, and they must come in one order. So they stay in this rank's memory until the
    matrix is made, which then has about a byte for each value.

    Parameters
    ----------
    data : Dataset or Epoch
        The rows: of the next epoch, or of that one.
    features : str or sequence of str
        A column of lists of one length, or several columns of numbers.
    label, weight : str, optional
        Columns of numbers.
    **options
        Of QuantileDMatrix, as max_bin.

    Returns
    -------
    xgboost.QuantileDMatrix

    Raises
    ------
    ConfigError
        The data set has uneven="pad", with which rows come twice, or "drop", with which some are missing: set
        uneven="keep".
    """
    dataset = data.dataset if isinstance(data, Epoch) else data
    if dataset._steps.uneven != "keep":
        raise ConfigError(
            f"uneven='{dataset._steps.uneven}': XGBoost needs each row once, and no equal steps: set uneven='keep'"
        )
    import xgboost

    names = [features] if isinstance(features, str) else list(features)
    columns = {name: column for name, column in (("label", label), ("weight", weight)) if column is not None}
    parts = []
    for batch in data:
        arrays = {name: batch[column].numpy() for name, column in columns.items()}
        parts.append({"data": numpy.column_stack([batch[name].numpy() for name in names]), **arrays})
        del batch
    # A rank without rows takes part, too.
    width = numpy.array([parts[0]["data"].shape[1] if parts else 0])
    [width] = xgboost.collective.allreduce(width, xgboost.collective.Op.MAX)
    parts = parts or [{"data": numpy.empty((0, width), numpy.float32), **dict.fromkeys(columns, numpy.empty(0))}]

    class Parts(xgboost.DataIter):
        """Gives all parts as often as XGBoost asks for them."""

        def reset(self) -> None:
            self._rest = iter(parts)

        def next(self, input_data: Any) -> bool:
            part = next(self._rest, None)
            if part is not None:
                input_data(**part)
            return part is not None

    made = Parts()
    made.reset()
    return xgboost.QuantileDMatrix(made, **options)


@contextlib.contextmanager
def collective() -> Iterator[None]:
    """Lets XGBoost train one model on the rows of all ranks of torch.distributed. All ranks enter it, and train.

    Examples
    --------
    ::

        def train(data):
            with spark_supplier.xgboost.collective():
                rows = spark_supplier.xgboost.matrix(data, "features", "label")
                return xgboost.train({"objective": "reg:squarederror"}, rows)
    """
    import xgboost
    from xgboost.tracker import RabitTracker

    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        yield
        return
    rank = distributed.get_rank()
    arguments: list[Any] = [None]
    if rank == 0:
        address = socket.getaddrinfo(os.environ["MASTER_ADDR"], None)[0][4][0]
        tracker = RabitTracker(host_ip=address, n_workers=distributed.get_world_size(), sortby="task")
        tracker.start()
        arguments = [tracker.worker_args()]
    distributed.broadcast_object_list(arguments)
    xgboost.collective.init(**arguments[0], dmlc_task_id=str(rank))
    # After an exception it would wait for the others, and they for this rank.
    yield
    xgboost.collective.finalize()
    if rank == 0:
        tracker.wait_for()
