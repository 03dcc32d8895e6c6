"""Launchers start ranks and end them: what all have in common, and the one over Spark's tasks."""

from __future__ import annotations

import abc
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from spark_supplier.driver import failures
from spark_supplier.driver.failures import Cause, Priority
from spark_supplier.driver.hub import Peer
from spark_supplier.driver.placement import wait_for_placement
from spark_supplier.driver.sessions import Session
from spark_supplier.driver.spark_jobs import SparkJobs
from spark_supplier.driver.turns import Needs
from spark_supplier.errors import RunError
from spark_supplier.node.environment import NodeSpec, path_entries
from spark_supplier.node.messages import NodeFailed, NodeStarted, OutputStarted, RankEnded, RankStarted, Stop
from spark_supplier.node.run_files import RunFiles


class Launcher(abc.ABC):
    """Of ranks that serve one run or several. All calls are on the run's thread."""

    # Whether the ranks print into the program's own streams, where a bar would be in the way.
    prints_itself = False
    # Whether a rank has ended, and the reason is still to come.
    is_explaining = False
    # A host whose ranks have ended with the task that keeps them, unasked. Spark says why.
    lost_host: str | None = None

    def __init__(self, ranks: int, share: int = 1) -> None:
        """share: how many neighbouring ranks are on one node, and have their tasks together."""
        self._ranks = ranks
        self._share = share
        # Of each host, CUDA_VISIBLE_DEVICES.
        self._gpus: dict[str, str] = {}
        self._is_stopping = False
        self._outputs: list[Peer] = []

    @abc.abstractmethod
    def reserve(self, session: Session, tasks_per_rank: int, timeout: float, option: str = "start_timeout") -> int:
        """Checks that Spark has the task slots. Returns the most ranks that a node may get.

        option: that sets the timeout, for texts.
        """

    @abc.abstractmethod
    def slots(self, tasks_per_rank: int) -> int:
        """The task slots that the run needs on all hosts together."""

    @abc.abstractmethod
    def needs(self, tasks_per_rank: int) -> Needs:
        """What the run holds, after reserve(). tasks_per_rank 0: what idle ranks hold."""

    def use(self, gpus: dict[str, str]) -> None:
        """The ranks of each host get these GPUs, of the run's turn. Call it before start()."""
        self._gpus = gpus

    @abc.abstractmethod
    def start(self, files: RunFiles, environment: dict[str, str], jobs: SparkJobs, post: Callable[[Any], None]) -> None:
        """Starts the ranks with this environment. post: gets messages for handle(), on any thread."""

    def takes(self, peer: Peer, rank: Any) -> bool:  # noqa: ARG002
        """Whether a process is one of the ranks, by the RankStarted that it has sent. Otherwise it knows why not."""
        return True

    def file_options(self, files: RunFiles, kind: str, hosts: dict[str, list[int]] | None) -> dict[str, str]:
        """The options by which Spark's side finds the ranks. hosts: theirs; None: this machine."""
        mapped_files, named_pipes = files.config_texts(kind)
        options = {"mapped-files-text": mapped_files, "named-pipes-text": named_pipes}
        return options if hosts is None else {**options, "hosts-text": files.hosts_text(hosts)}

    def result_options(self, files: RunFiles, share: int | str | None, reader: int) -> dict[str, Any]:
        """What else it needs to find the rows that the ranks have written."""
        return {"ranks": self._ranks, "share": share or 1, "reader": reader, "results-folder": files.results_folder}

    def handle(self, peer: Peer | None, message: Any) -> Cause | None:
        """Takes each message of the run. Returns a failure that it reports. message None: that peer is gone."""
        if isinstance(message, OutputStarted) and peer is not None:
            self._outputs.append(peer)
        elif message is None and peer in self._outputs:
            self._outputs.remove(peer)
        elif isinstance(message, NodeFailed):
            return Cause(Priority.PROCESS, RunError(message.text))
        else:
            return self._handle(peer, message)
        return None

    @abc.abstractmethod
    def _handle(self, peer: Peer | None, message: Any) -> Cause | None: ...

    @property
    @abc.abstractmethod
    def hosts(self) -> dict[str, list[int]] | None:
        """The ranks of each host, when the DataFrames may be supplied. Until then None."""

    @property
    @abc.abstractmethod
    def keepers(self) -> Sequence[Peer]:
        """The processes that have the files of a call, and the output of its ranks: those that have started."""

    @property
    @abc.abstractmethod
    def keepers_in_all(self) -> int:
        """How many keepers there will be."""

    @property
    def has_ended(self) -> bool:
        """Whether its processes and files are gone, and handle() has got the last output of the ranks."""
        return not self.keepers and not self._outputs

    @abc.abstractmethod
    def stop(self, stop: Stop) -> None:
        """Begins to end the ranks."""


class TorchLauncher(Launcher):
    """The driver places the ranks, and a starter task of Spark on each node starts and ends them there."""

    def __init__(self, ranks: int, share: int = 1) -> None:
        super().__init__(ranks, share)
        self._hosts: dict[str, list[int]] = {}
        # Of each node process that runs, its host.
        self._nodes: dict[Peer, str] = {}
        # Ranks that have ended by themselves.
        self._ended: set[int] = set()
        self._started = 0
        self._connected: dict[Peer, int] = {}
        # Ranks that have exited with status 0, while the driver may still be reading their results.
        self._exited: dict[int, RankEnded] = {}

    def reserve(self, session: Session, tasks_per_rank: int, timeout: float, option: str = "start_timeout") -> int:
        self._hosts = wait_for_placement(session, self._ranks, tasks_per_rank, timeout, option, self._share)
        return max(map(len, self._hosts.values()))

    def needs(self, tasks_per_rank: int) -> Needs:
        ranks = {host: len(ranks) for host, ranks in self._hosts.items()}
        fed = {host: count // self._share * tasks_per_rank for host, count in ranks.items()}
        return Needs({host: count + 1 for host, count in fed.items()}, fed if tasks_per_rank else {}, ranks)

    def slots(self, tasks_per_rank: int) -> int:
        return self._ranks // self._share * tasks_per_rank + len(self._hosts)

    def start(self, files: RunFiles, environment: dict[str, str], jobs: SparkJobs, post: Callable[[Any], None]) -> None:
        path = path_entries()
        specs = {
            host: NodeSpec(host, ranks, self._ranks, index, files, environment, path, self._gpus.get(host))
            for index, (host, ranks) in enumerate(self._hosts.items())
        }
        jobs.start_nodes({host: pickle.dumps(spec) for host, spec in specs.items()})

    def _handle(self, peer: Peer | None, message: Any) -> Cause | None:
        if isinstance(message, NodeStarted) and peer is not None:
            self._started += 1
            self._nodes[peer] = message.host
        elif message is None and peer in self._nodes:
            host = self._nodes.pop(peer)
            if not (self._is_stopping or self._ended.issuperset(self._hosts[host])):
                self.lost_host = host
        elif isinstance(message, RankStarted) and peer is not None:
            self._connected[peer] = message.rank
        elif message is None and peer in self._connected:
            ended = self._exited.pop(self._connected.pop(peer), None)
            return failures.of_process(ended) if ended else None
        elif isinstance(message, RankEnded):
            if not message.stopped:
                self._ended.add(message.rank)
            if message.status == 0 and message.rank in self._connected.values():
                self._exited[message.rank] = message
                return None
            return failures.of_process(message)
        return None

    @property
    def hosts(self) -> dict[str, list[int]] | None:
        return self._hosts if self._started == len(self._hosts) else None

    @property
    def keepers(self) -> Sequence[Peer]:
        return list(self._nodes)

    @property
    def keepers_in_all(self) -> int:
        return len(self._hosts)

    def stop(self, stop: Stop) -> None:
        self._is_stopping = True
        for node in self._nodes:
            node.send(stop)
