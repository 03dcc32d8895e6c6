"""What mypy must know of calls: `make lint-python` checks it, and nobody runs it.

assert_type() fails if a type is another one, and an ignored error that does not come is an error, too.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from spark_supplier import Cache, Checkpoints, Mpirun, RankData, Rows, RunResult, Shuffle, Supplier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import assert_type


def train(data: RankData, rate: float, epochs: int = 1) -> list[float]:
    return [rate] * epochs


def train_with(data: RankData, **options: Any) -> str:
    return str(options)


def evaluate(data: RankData, results: int, /) -> int:
    return results


def the_value_is_known(supplier: Supplier, df: DataFrame) -> None:
    assert_type(supplier.run(train, df, 0.1), list[float])
    assert_type(supplier.run(train, Rows(df, batch_size=8), rate=0.1, epochs=2), list[float])
    assert_type(supplier.run(train_with, df, rate=0.1), str)
    assert_type(supplier.run(evaluate, df, 1), int)
    assert_type(supplier.run(lambda data: len(data.columns), df), int)
    assert_type(supplier.run(functools.partial(train, rate=0.1), df), list[float])
    assert_type(supplier.run(train, df, 0.1, resume=True), list[float])
    found = supplier.run(train, df, 0.1, results="id, score float")
    assert_type(found, RunResult[list[float]])
    with found as entered:
        assert_type(entered.value, list[float])


def wrong_arguments_are_errors(supplier: Supplier, df: DataFrame) -> None:
    supplier.run(train, df)  # type: ignore[arg-type]
    supplier.run(train, df, "fast")  # type: ignore[arg-type]
    supplier.run(train, df, 0.1, batch_size=8)  # type: ignore[call-arg]
    supplier.run(train, df, 0.1, 2, 3)  # type: ignore[arg-type]
    supplier.run(5, df)  # type: ignore[call-overload]


def wrong_options_are_errors(df: DataFrame) -> None:
    Rows(df, shuffle="elements")  # type: ignore[arg-type]
    Rows(df, uneven="cut")  # type: ignore[arg-type]
    Rows(df, batchsize=8)  # type: ignore[call-arg]
    Rows(df, shuffle=Shuffle("rows", buffer=9), cache=Cache("/tmp", quota="5GiB"))
    Supplier(2, launcher="mpirun")  # type: ignore[arg-type]
    Supplier(2, launcher=Mpirun(), checkpoints=Checkpoints("/tmp", every="10 min"))
    Supplier(ranks="2")  # type: ignore[arg-type]
