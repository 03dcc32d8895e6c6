"""What a run needs of a launcher: it starts the ranks, and ends them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from supply.errors import RunError
from supply.ranks.control import Peer
from supply.ranks.messages import Stop
from supply.ranks.run_files import RunFiles
from supply.spark.failures import Cause
from supply.spark.spark_jobs import SparkJobs


class Launcher(Protocol):
    """Of one run. All calls are on the run's thread."""

    def reserve(self, context: Any, tasks_per_rank: int, timeout: float, option: str = "start_timeout") -> int:
        """Checks that Spark has the task slots. Returns the most ranks that a node may get.

        option: that sets the timeout, for texts.
        """

    def slots(self, tasks_per_rank: int) -> int:
        """The task slots that the run needs on all hosts together."""

    def slots_of_hosts(self, tasks_per_rank: int) -> dict[str, int]:
        """The slots of each host that the run holds, after reserve()."""

    def start(self, files: RunFiles, environment: dict[str, str], jobs: SparkJobs, post: Callable[[Any], None]) -> None:
        """Starts the ranks with this environment. post: gets messages for handle(), on any thread."""

    def handle(self, peer: Peer | None, message: Any) -> Cause | None:
        """Takes each message of the run. Returns a failure that it reports. message None: that peer is gone."""

    @property
    def hosts(self) -> dict[str, list[int]] | None:
        """The ranks of each host, when the DataFrames may be supplied. Until then None."""

    @property
    def is_explaining(self) -> bool:
        """Whether a rank has ended, and the reason is still to come."""

    @property
    def has_ended(self) -> bool:
        """Whether its processes and files are gone, and handle() has got the last output of the ranks."""

    def stop(self, stop: Stop) -> None:
        """Begins to end the ranks."""


def make_launcher(name: str, ranks: int, host_file: str | os.PathLike[str] | None) -> Launcher:
    """name: "torch" or "mpirun". Raises RunError for a bad host file, or without mpirun."""
    from supply.spark.mpirun_launcher import MpirunLauncher
    from supply.spark.torch_launcher import TorchLauncher

    if name == "mpirun":
        return MpirunLauncher(ranks, host_file)
    if host_file is not None:
        raise RunError("host_file is for launcher='mpirun': Spark's executors are the hosts of launcher='torch'")
    return TorchLauncher(ranks)
