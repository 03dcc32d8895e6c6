"""What driver, node processes and ranks send each other through the hub."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spark_supplier.node.exceptions import PickledException
from spark_supplier.node.run_files import RunFiles
from spark_supplier.times import EpochStatistics


@dataclass
class NodeStarted:
    """From a node process: its checks have passed, and it waits for the first call."""

    host: str


@dataclass
class Begin:
    """A call begins. To a node process, or to the keepers of mpirun's ranks: make its files. To a rank: is it there?"""

    files: RunFiles


@dataclass
class CallReady:
    """From a node process or a keeper: the files of the call are there."""


@dataclass
class End:
    """To a node process or a keeper: the call has ended well. Remove its files, except results that Spark reads."""

    keep_results: bool


@dataclass
class CallEnded:
    """From a node process or a keeper, on the connection for output: all lines of the call have been sent."""


@dataclass
class NodeFailed:
    """From a node process, or a rank of mpirun: why its node cannot have ranks."""

    text: str


@dataclass
class OutputStarted:
    """From a node process or a keeper, on a connection for output of ranks. It ends after the last line."""


@dataclass
class KeeperStarted:
    """From the keeper of a rank that mpirun has started. Its connection ends when the rank and its files are gone."""


@dataclass
class RankStarted:
    """From a rank, first, and when a call begins. port: which it holds, for MASTER_PORT."""

    rank: int
    host: str
    port: int


@dataclass
class RankConnected(RankStarted):
    """From a rank elsewhere, first. ranks: how many there are, as its program knows. It holds no port."""

    ranks: int


@dataclass
class NotTaken:
    """To a rank elsewhere: why it is none of the run."""

    text: str


@dataclass
class Attempt:
    """Where the ranks of a call begin, which may be started several times.

    resume_positions: of the writer; None: at the beginning. positions: of each rank after that, if there are as many
    ranks as have saved them. loaded: the number of the checkpoint; None: there is none.
    holders: the ranks that have saved a state in it. next: the number of the next one; None: ranks cannot save any.
    every: seconds between two of them, at least. restarts: how often the call has started its ranks again.
    last_failure: why.
    """

    resume_positions: str | None = None
    positions: list[str | None] | None = None
    loaded: int | None = None
    holders: list[int] = field(default_factory=list)
    next: int | None = None
    every: float | None = None
    restarts: int = 0
    last_failure: str | None = None


@dataclass
class Work:
    """To a rank: what to run.

    payload: a pickled Job. path: where the driver looks for modules. masters: address and port of the first rank of
    each function. backend: of torch.distributed; None: the rank does not initialize it.
    """

    payload: bytes
    files: RunFiles
    path: list[str]
    masters: list[tuple[str, int]]
    backend: str | None
    attempt: Attempt


@dataclass
class RankReady:
    """From a rank that has met the others. What follows is the user's code, and takes as long as it likes."""

    rank: int


@dataclass
class Output:
    """A line that a rank has printed. stream: "stdout" or "stderr"."""

    rank: int
    stream: str
    line: str


@dataclass
class Loop:
    """Where a rank's loop over its data is.

    batches: those of the epoch that it has got. has_all: whether it has got the whole epoch.
    """

    epoch: int
    batches: int
    has_all: bool


@dataclass
class Progress:
    """From each rank, when it changes. per_epoch: elements in each epoch; None: not known.

    validated: elements of the validation data. waits_for: "Spark", or "other ranks"; None: the rank computes.
    loop: None: no training data has come.
    """

    rank: int
    epoch: int
    elements: int
    per_epoch: int | None
    validated: int
    waits_for: str | None
    loop: Loop | None


# A program's numbers have other names.
PLACES = ("epoch", "batch", "seconds")


@dataclass(frozen=True)
class Reported:
    """What a program reported. epoch, batch: where its loop was. seconds: since the call began."""

    epoch: int
    batch: int
    seconds: float
    values: dict[str, float]

    def row(self) -> dict[str, Any]:
        """Of statistics.history."""
        return {**self.values, "epoch": self.epoch, "batch": self.batch, "seconds": self.seconds}


@dataclass
class Measured:
    """From each rank, beside Progress. statistics: of the epochs that have changed. reports: the new ones of rank 0."""

    rank: int
    statistics: list[EpochStatistics]
    reports: list[Reported]


@dataclass
class Saved:
    """From a rank that has saved its part of a checkpoint. position: of its data. has_state: whether it has a file."""

    rank: int
    number: int
    position: str | None
    has_state: bool


@dataclass
class Result:
    """From a rank whose function has returned.

    at_end: whether the rank has received all its data. payload: of rank 0, the pickled result. repeated, left_out: rows
    of the rank, for equal steps.
    """

    rank: int
    at_end: bool
    payload: bytes
    repeated: int = 0
    left_out: int = 0


@dataclass
class Leave:
    """To a rank that has returned: all ranks have, and nobody needs the rest of its data."""


@dataclass
class RankIdle:
    """From a rank that has left its data and waits for another call. Its streams have all that it has printed."""

    rank: int


@dataclass
class Failure:
    """From a rank whose function has raised.

    of_spark: the exception only repeats what Spark reported. of_collective: exceptions.is_of_collective() of it.
    """

    rank: int
    host: str
    traceback: str
    of_spark: bool
    of_collective: bool
    raised: PickledException


@dataclass
class RankEnded:
    """From a node process or the launcher: the exit status of a rank, as subprocess reports it.

    stopped: whether it had already been asked to end.
    """

    rank: int
    host: str
    status: int
    stopped: bool


@dataclass
class Imbalance:
    """From the driver's JVM: the ranks' shares of a DataFrame are very unequal.

    warning: says so. partitions: over how many its rows are dealt again; 0: they are not. name: of the DataFrame.
    """

    warning: str
    partitions: int
    name: str


@dataclass
class SlotsWanted:
    """From the driver's JVM: another run needs what ranks hold that wait for a call."""

    wanted: bool


@dataclass
class Stop:
    """To a node process: end the ranks. To a rank: return now.

    dump: first let each rank print where it is. idle: the ranks wait for a call, so they end by themselves.
    keep_results: of ranks that run supply-server: Spark reads what they have written.
    """

    dump: bool = False
    idle: bool = False
    keep_results: bool = False


Message = Any
