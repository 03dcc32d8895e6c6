"""What every rank of a run does: pickled by the driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from supply.ranks.script import Script

if TYPE_CHECKING:
    from supply.ranks.rank_data import RankData


@dataclass
class DataSpec:
    """config: the paths of both config files. options: of SupplyDataset. epochs: in all.

    resume_positions: of the writer, if this run resumes. validation: of the second DataFrame. results: the schema of
    the rows that ranks write, as text; None: they write none. exchange_over: "mpi" or "torch", if the ranks exchange
    elements; None: they do not.
    """

    config: tuple[str, str]
    options: dict[str, Any]
    epochs: int
    resume_positions: str | None = None
    validation: DataSpec | None = None
    results: str | None = None
    exchange_over: str | None = None


@dataclass
class Job:
    """What a rank calls: a function, or a script.

    args, kwargs: of the function after the data. A script gets args as words, and kwargs as --name value.
    """

    function: Callable[..., Any] | None
    script: Script | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    data: DataSpec

    def run(self, data: RankData) -> Any:
        if self.function is not None:
            return self.function(data, *self.args, **self.kwargs)
        assert self.script is not None
        options = ((f"--{key.replace('_', '-')}", str(value)) for key, value in self.kwargs.items())
        self.script.run([*map(str, self.args), *(word for option in options for word in option)])
        return None
