"""launcher="elsewhere": something else starts the ranks, anywhere, and they connect to the hub and to the executors."""

from __future__ import annotations

import hashlib
import hmac
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from spark_supplier.driver.failures import Cause, Priority
from spark_supplier.driver.hub import Peer
from spark_supplier.driver.launcher import Launcher
from spark_supplier.driver.placement import wait_for_slots
from spark_supplier.driver.sessions import Session
from spark_supplier.driver.spark_jobs import SparkJobs
from spark_supplier.driver.turns import Needs
from spark_supplier.errors import RankError, RunConfigError
from spark_supplier.node.hub import KEY, RUN
from spark_supplier.node.messages import NotTaken, RankConnected, Result, Stop
from spark_supplier.node.run_files import RunFiles
from spark_supplier.settings import Elsewhere, Rows, as_run_errors


def check_rows(rows: Rows) -> None:
    """Raises RunConfigError if ranks elsewhere cannot have them so."""
    for name, is_set, why in (
        ("share", rows.share is not None, "ranks that connect have a ring each: leave it out"),
        ("order", rows.order == "global", "it needs ranks beside Spark: leave it out"),
        ("cache", rows.cache is not None, "its files lie beside Spark: leave it out, and persist df"),
    ):
        if is_set:
            raise RunConfigError(f"{name} is set, and the ranks are elsewhere (launcher='elsewhere'): {why}")


class ElsewhereLauncher(Launcher):
    """Waits for the ranks. They end with their connections."""

    def __init__(self, session: Session, ranks: int, options: Elsewhere, made: str) -> None:
        """made: the key if the user has given none."""
        super().__init__(ranks)
        self._session = session
        self._options = options
        self._made = made
        self._hosts: list[str] = []
        self._there: dict[int, tuple[Peer, RankConnected]] = {}
        self._returned: set[int] = set()

    def reserve(self, session: Session, tasks_per_rank: int, timeout: float, option: str = "start_timeout") -> int:
        self._hosts = wait_for_slots(session, self._ranks, tasks_per_rank, timeout, option)
        return self._ranks

    def slots(self, tasks_per_rank: int) -> int:
        return self._ranks * tasks_per_rank

    def needs(self, tasks_per_rank: int) -> Needs:
        slots = self.slots(tasks_per_rank)
        return Needs({}, dict.fromkeys(self._hosts, slots) if slots else {}, {})

    def start(self, files: RunFiles, environment: dict[str, str], jobs: SparkJobs, post: Callable[[Any], None]) -> None:
        name, given = self._options.run, self._options.key
        if given is None and (of_environment := os.environ.get("SUPPLY_KEY")):
            with as_run_errors():
                given = Elsewhere(key=of_environment).key
        key = given or self._made
        # Calls of Spark Connect are shown on its page.
        pad = hmac.new(bytes.fromhex(environment[KEY]), f"serve {name}".encode(), hashlib.sha256).digest()
        masked = bytes(one ^ other for one, other in zip(hashlib.sha256(key.encode()).digest(), pad))
        served = self._session.ask("hub-serve", run=environment[RUN], name=name, key=masked.hex())
        port, _, tls = served["port"].partition("/")
        host = f"[{served['host']}]" if ":" in served["host"] else served["host"]
        of_ranks = {"SUPPLY_CONNECT": f"supply{'s' if tls else ''}://{host}:{port}/{name}", "SUPPLY_KEY": key}
        said = key if given is None else "(as given)"
        address = of_ranks["SUPPLY_CONNECT"]
        print(
            f"supply: {self._ranks} ranks connect by SUPPLY_CONNECT={address} SUPPLY_KEY={said}",
            file=sys.stderr,
            flush=True,
        )
        if self._options.start is not None:
            self._options.start(of_ranks)

    def takes(self, peer: Peer, rank: Any) -> bool:
        """False: it has been told why not."""
        why = None
        if not isinstance(rank, RankConnected) or rank.ranks != self._ranks or rank.rank >= self._ranks:
            why = (
                f"this program is rank {rank.rank} of {getattr(rank, 'ranks', 1)}, and Spark's side waits for "
                f"{self._ranks} ranks: give both the same number"
            )
        elif rank.rank in self._there:
            other = self._there[rank.rank][1]
            why = f"rank {rank.rank} is connected already, from {other.host}: start each rank once"
        if why is not None:
            peer.send(NotTaken(why))
        return why is None

    def _handle(self, peer: Peer | None, message: Any) -> Cause | None:
        if isinstance(message, RankConnected) and peer is not None:
            self._there[message.rank] = peer, message
        elif isinstance(message, Result):
            self._returned.add(message.rank)
        elif message is None:
            for rank, (of_rank, started) in list(self._there.items()):
                if of_rank is peer:
                    del self._there[rank]
                    if not (self._is_stopping or rank in self._returned):
                        text = (
                            f"rank {rank} on {started.host} has left before it had all its data: its own output says "
                            "why, or its node or the network is down"
                        )
                        return Cause(Priority.PROCESS, RankError(text, rank, started.host))
        return None

    @property
    def hosts(self) -> dict[str, list[int]] | None:
        if len(self._there) + len(self._returned - self._there.keys()) < self._ranks:
            return None
        hosts: dict[str, list[int]] = {}
        for rank, (_, started) in sorted(self._there.items()):
            hosts.setdefault(started.host, []).append(rank)
        return hosts

    @property
    def keepers(self) -> Sequence[Peer]:
        return []

    @property
    def keepers_in_all(self) -> int:
        return 0

    @property
    def has_ended(self) -> bool:
        return not self._there

    def file_options(
        self,
        files: RunFiles,  # noqa: ARG002
        kind: str,
        hosts: dict[str, list[int]] | None,  # noqa: ARG002
    ) -> dict[str, str]:
        return {"serve": f"{self._options.run}/{kind}"}

    def result_options(self, files: RunFiles, share: int | str | None, reader: int) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def stop(self, stop: Stop) -> None:
        self._is_stopping = True
        for peer, _ in self._there.values():
            peer.send(stop)
