"""The rows of a call of Supplier.run, checked against their DataFrames, and what both sides are told of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from spark_supplier.arguments import BATCH_CHECKS, check_batches, optional_size
from spark_supplier.driver import frame_checks
from spark_supplier.driver.spark_jobs import Supplied
from spark_supplier.errors import RunConfigError
from spark_supplier.node.job import NO_LIMIT_SECONDS, DataSpec
from spark_supplier.settings import Cache, Rows, Shuffle, as_run_errors

# Small blocks reach a rank early.
_BATCHES_IN_BLOCK = 4


class CallRows:
    """results, backend: of the call. functions: how many it has. spread: the option repartition of the writer."""

    def __init__(self, rows: Rows, results: Any, backend: str | None, functions: int = 1) -> None:
        self.rows = rows
        if functions > 1 and rows.share is not None:
            raise RunConfigError(
                "share is for the ranks of one function, and several functions share the rows by themselves: leave it "
                "out"
            )
        self._functions = functions
        # Of each group of ranks, each function has one.
        self.share = functions if functions > 1 else None if rows.share == 1 else rows.share
        self.session = frame_checks.check_session(rows.df)
        self.kinds = ("train",) if rows.validation is None else ("train", "validation")
        self.shuffle = rows.shuffle if isinstance(rows.shuffle, Shuffle) else Shuffle(rows.shuffle)
        self.is_global = rows.order == "global"
        if results is not None and rows.uneven == "pad":
            raise RunConfigError(
                "uneven='pad' repeats rows, and results= would have them twice: leave it out, or set 'drop'"
            )
        uneven = rows.uneven or ("keep" if backend is None or results is not None else "pad")
        self._batches = {**{name: getattr(rows, name) for name in BATCH_CHECKS}, "uneven": uneven}
        with as_run_errors():
            self._columns = frame_checks.check_columns(rows.df, rows.columns)
            check_batches({**self._batches, "columns": self._columns})
        frame_checks.check_nulls(rows.df, rows.nulls, rows.ragged, rows.dtypes)
        if rows.validation is not None:
            frame_checks.check_frame(rows.validation, "validation")
            frame_checks.check_columns(rows.validation, self._columns, "validation")
            frame_checks.check_same_types(rows.df, rows.validation, self._columns)
            frame_checks.check_nulls(rows.validation, rows.nulls, rows.ragged, rows.dtypes)
        self.spread: str | int = "false" if rows.repartition is False else rows.repartition
        if self.is_global and self.spread == "auto":
            self.spread = "false"
        self._half = frame_checks.half_columns(rows.df, self._columns, rows.dtypes)
        self._sparse = [] if isinstance(rows.ragged, str) else _named(rows.ragged, self._columns, "sparse")
        self._schema = (
            None
            if results is None
            else frame_checks.result_schema(results, rows.df, self._columns, self._half, self._sparse)
        )

    @property
    def together(self) -> int:
        """How many ranks must be on one node."""
        return self.share if isinstance(self.share, int) else 1

    def check_ranks(self, ranks: int) -> None:
        """Raises RunConfigError if they are no whole groups."""
        if ranks % self.together:
            what = f"share is {self.together}" if self._functions == 1 else f"there are {self._functions} functions"
            raise RunConfigError(
                f"{what}, and ranks is {ranks}: each {self.together} neighbouring ranks get the same rows, so ranks "
                "must be a multiple of it"
            )

    def spec(self, exchange_over: str | None) -> DataSpec:
        """What a rank is told."""
        options = {**self._batches, "columns": self._columns, "timeout": NO_LIMIT_SECONDS}
        epochs = self.rows.epochs
        share, functions = self.share, self._functions
        spec = DataSpec("train", options, epochs, None, self._schema, exchange_over, self.is_global, share, functions)
        if len(self.kinds) > 1:
            spec.validation = DataSpec(
                "validation", {**options, "uneven": "keep"}, epochs, is_global=self.is_global, share=share
            )
        return spec

    def supplied(self, ranks: int, begins: str | None, partitions: str | int, timeout: float) -> Iterator[Supplied]:
        """What Spark is told. begins: the positions to resume from. partitions: the option repartition for df."""
        rows, cache = self.rows, self.rows.cache
        if cache is not None and cache != "memory" and not isinstance(cache, Cache):
            cache = Cache(cache)
        files = cache if isinstance(cache, Cache) else None
        options = {
            "epochs": rows.epochs, "seed": rows.seed, "ranks": ranks,
            "shuffle": self.shuffle.how, "shuffle-buffer": self.shuffle.buffer,
            "exchange-fraction": self.shuffle.fraction,
            "resident": cache == "memory", "resident-folder": files and files.folder,
            "resident-quota": files and optional_size("quota", files.quota), "keep": files and files.keep,
            "lists": self._lists(), "vectors": _option(self._sparse, "dense", "sparse"),
            "half": ",".join(self._half) or None,
            "block-elements": _BATCHES_IN_BLOCK * rows.batch_size,
            "timeout": timeout, "rank-timeout": NO_LIMIT_SECONDS, "share": self.share,
        }  # fmt: skip
        of_train = {**options, "resume-positions": begins, "global-batch": rows.batch_size if self.is_global else None}
        train = frame_checks.selected(rows.df, self._columns)
        yield Supplied(train, "train", of_train, partitions)
        if rows.validation is not None:
            # Other data, with a name of its own.
            options["keep"] = options["keep"] and f"{options['keep']} (validation)"
            if self.shuffle.how == "all":
                options.update({"shuffle": "partitions", "exchange-fraction": None})
            yield Supplied(frame_checks.selected(rows.validation, self._columns), "validation", options, self.spread)

    def _lists(self) -> str:
        """Those whose lists vary: "auto", "varying" or names of columns, as of the writer."""
        ragged = self.rows.ragged
        if isinstance(ragged, str):
            return "varying"
        return _option(_named(ragged, self._columns, "jagged", "list", "pad", "nested"), "auto", "varying")


def _option(names: list[str], none: str, every: str) -> str:
    """Commas separate the names."""
    return every if any("," in name for name in names) else ",".join(names) or none


def _named(by_column: Any, columns: Collection[str], *values: str) -> list[str]:
    """The columns for which, or for something in which, there is one of these values."""
    given = [name for name, value in (by_column or {}).items() if value in values]
    return [name for name in columns if any(each == name or each.startswith(f"{name}.") for each in given)]
