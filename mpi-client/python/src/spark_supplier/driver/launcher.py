"""Launchers start ranks and end them: what they have in common, and which one a run has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from spark_supplier.driver.failures import Cause
from spark_supplier.driver.hub import Peer
from spark_supplier.driver.mpirun_launcher import MpirunLauncher
from spark_supplier.driver.sessions import Session
from spark_supplier.driver.spark_jobs import SparkJobs
from spark_supplier.driver.torch_launcher import TorchLauncher
from spark_supplier.driver.turns import Needs
from spark_supplier.node.messages import Stop
from spark_supplier.node.run_files import RunFiles
from spark_supplier.settings import Mpirun


class Launcher(Protocol):
    """Of ranks that serve one run or several. All calls are on the run's thread."""

    # Whether the ranks print into the program's own streams, where a bar would be in the way.
    prints_itself: bool

    def reserve(self, session: Session, tasks_per_rank: int, timeout: float, option: str = "start_timeout") -> int:
        """Checks that Spark has the task slots. Returns the most ranks that a node may get.

        option: that sets the timeout, for texts.
        """

    def slots(self, tasks_per_rank: int) -> int:
        """The task slots that the run needs on all hosts together."""

    def needs(self, tasks_per_rank: int) -> Needs:
        """What the run holds, after reserve(). tasks_per_rank 0: what idle ranks hold."""

    def use(self, gpus: dict[str, str]) -> None:
        """The ranks of each host get these GPUs, of the run's turn. Call it before start()."""

    def start(self, files: RunFiles, environment: dict[str, str], jobs: SparkJobs, post: Callable[[Any], None]) -> None:
        """Starts the ranks with this environment. post: gets messages for handle(), on any thread."""

    def handle(self, peer: Peer | None, message: Any) -> Cause | None:
        """Takes each message of the run. Returns a failure that it reports. message None: that peer is gone."""

    @property
    def hosts(self) -> dict[str, list[int]] | None:
        """The ranks of each host, when the DataFrames may be supplied. Until then None."""

    @property
    def keepers(self) -> Sequence[Peer]:
        """The processes that have the files of a call, and the output of its ranks: those that have started."""

    @property
    def keepers_in_all(self) -> int:
        """How many keepers there will be."""

    @property
    def is_explaining(self) -> bool:
        """Whether a rank has ended, and the reason is still to come."""

    @property
    def lost_host(self) -> str | None:
        """A host whose ranks have ended with the task that keeps them, unasked. Spark says why."""

    @property
    def has_ended(self) -> bool:
        """Whether its processes and files are gone, and handle() has got the last output of the ranks."""

    def stop(self, stop: Stop) -> None:
        """Begins to end the ranks."""


def make_launcher(chosen: str | Mpirun, ranks: int) -> Launcher:
    """chosen: as of a Supplier. Raises RunError for a bad host file, or without mpirun."""
    return MpirunLauncher(ranks, chosen.host_file) if isinstance(chosen, Mpirun) else TorchLauncher(ranks)
