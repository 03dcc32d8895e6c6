"""The files of one run on a node: the two config files, and the folder of the pairs."""

from __future__ import annotations

import contextlib
import os
import pathlib
import platform
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_supplier.errors import RunError, RunTimeoutError
from spark_supplier.launch import config_files, host_file
from spark_supplier.launch.command import Failure, TimeLimit
from spark_supplier.limits import container_memory, more_space, space

# What libsupply takes if the config line has no sizes (docs/CONFIG-FILES.md).
_DEFAULT_BLOCKS, _DEFAULT_BLOCK = 4, 2 << 20


@contextlib.contextmanager
def launch_errors() -> Iterator[None]:
    """Within it, a Failure of the launchers is a RunError."""
    try:
        yield
    except TimeLimit as error:
        raise RunTimeoutError(str(error)) from error
    except Failure as error:
        raise RunError(str(error)) from error


@dataclass(frozen=True)
class RunFiles:
    """folder: of all runs of the node, for example /dev/shm. name: of this run.

    kinds: "train", and "validation" if there is a second DataFrame: a rank has a pair of each kind.
    pairs: the most of a kind on one node. ring, block: bytes; None: libsupply's default. driver_user: who made this.
    share: how many ranks read one ring, or "node".

    Ranks that serve several calls have files for themselves, and each call has its own (of_call()).
    """

    folder: str
    name: str
    kinds: tuple[str, ...] = ()
    pairs: int = 0
    ring: int | None = None
    block: int | None = None
    driver_user: int = field(default_factory=os.getuid)
    share: int | str = 1

    def of_call(
        self, number: int, kinds: tuple[str, ...], pairs: int, ring: int | None, block: int | None, share: int | str = 1
    ) -> RunFiles:
        return RunFiles(self.folder, f"{self.name}-{number}", kinds, pairs, ring, block, self.driver_user, share)

    @property
    def pair_folder(self) -> pathlib.Path:
        return pathlib.Path(self.folder, self.name)

    @property
    def config_folder(self) -> pathlib.Path:
        return pathlib.Path(self.folder, f"{self.name}-conf")

    def config(self, kind: str) -> tuple[str, str]:
        """The paths of mapped-files.conf and named-pipes.conf: the same on every node and on the driver."""
        folder = self.config_folder
        return str(folder / f"{kind}-mapped-files.conf"), str(folder / f"{kind}-named-pipes.conf")

    def opening(self, kind: str) -> dict[str, Any]:
        """The options of open() for data of that kind."""
        return {"config": self.config(kind)}

    @property
    def results_folder(self) -> pathlib.Path:
        """Of the ranks' results, which may outlive the run."""
        return pathlib.Path(self.folder, f"{self.name}-results")

    @property
    def host_file(self) -> pathlib.Path:
        return self.config_folder / "hosts"

    def config_texts(self, kind: str) -> tuple[str, str]:
        """What the two config files say."""
        pairs = [str(self.pair_folder / f"{kind}-{i}") for i in range(self.pairs)]
        with launch_errors():
            return config_files.lines(pairs, ring=self.ring, block=self.block)

    def begin(self, ranks: int, host: str) -> None:
        """Makes the files of a call on its node. Raises RunError if there is too little space."""
        self.write_config()
        # libsupply would make it, too: it says that the call has not ended.
        self.make_pair_folder()
        self.require_space(ranks, host)

    def write_config(self) -> None:
        """Does nothing if the files exist, because driver and ranks share this node."""
        if not self._make(self.config_folder, 0o755, {os.getuid(), self.driver_user}):
            return
        for kind in self.kinds:
            for path, text in zip(self.config(kind), self.config_texts(kind), strict=True):
                pathlib.Path(path).write_bytes(os.fsencode(text))

    def hosts_text(self, hosts: Mapping[str, Sequence[int]]) -> str:
        """What the host file says. hosts: the ranks of each host."""
        return host_file.text((host, len(ranks)) for host, ranks in hosts.items())

    def write_hosts(self, hosts: Mapping[str, Sequence[int]]) -> None:
        self.host_file.write_text(self.hosts_text(hosts), encoding="utf-8")

    def make_pair_folder(self) -> None:
        """Does nothing if another process of this user has made it."""
        self._make(self.pair_folder, 0o700, {os.getuid()})

    @staticmethod
    def _make(folder: pathlib.Path, mode: int, users: set[int]) -> bool:
        """False: one of these users has made it.

        The driver's node shows the name to every user of it, so one of them may have made the folder on another node.
        """
        try:
            os.mkdir(folder, mode)
            return True
        except FileExistsError:
            found = os.lstat(folder)
        except OSError as error:
            raise RunError(
                f"cannot make {folder} on {platform.node()} ({error.strerror}): each node needs a "
                "folder in memory that executors and ranks share: Supplier(folder=...)"
            ) from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in users or found.st_mode & 0o022:
            raise RunError(
                f"{folder} on {platform.node()} exists, and is a link, or belongs to another user (uid "
                f"{found.st_uid}), or can be written by others (mode {stat.S_IMODE(found.st_mode):04o}): "
                "name a folder that only users you trust can write (folder=...)"
            )
        return False

    def require_space(self, ranks: int, host: str) -> None:
        """Raises RunError if the rings of this node do not fit into the folder, or into the container's memory."""
        rings = ranks // self.share if isinstance(self.share, int) else 1
        needed = rings * len(self.kinds) * (self.ring or _DEFAULT_BLOCKS * (self.block or _DEFAULT_BLOCK))
        free = space(self.folder)[1]
        if free is not None and free < needed:
            raise RunError(f"the rings of the ranks need {needed >> 20} MiB: {more_space(host, self.folder)}")
        limit = container_memory()
        if limit is not None and limit[1] < needed:
            raise RunError(
                f"the rings of the ranks need {needed >> 20} MiB, but of their container's memory limit on {host}, "
                f"{limit[0] >> 20} MiB, {limit[1] >> 20} MiB are left: raise spark.executor.memoryOverhead, which is "
                "for ranks and rings, or set the rings smaller (Supplier(ring=...))"
            )

    def remove_with_calls(self, keep_results: bool = False) -> None:
        """As remove(), with the files of a call that has not ended. Results of earlier calls stay."""
        self.remove(keep_results)
        of_call = re.compile(re.escape(self.name) + r"-\d+(-conf)?")
        with contextlib.suppress(OSError):
            for name in filter(of_call.fullmatch, os.listdir(self.folder)):
                files = RunFiles(self.folder, name.removesuffix("-conf"))
                # When a call ends, the folder of its pairs goes first.
                files.remove(keep_results=not files.pair_folder.exists())

    def remove(self, keep_results: bool = False) -> None:
        """Removes all files of the run on this node. keep_results: but those that Spark reads."""
        for folder in (self.pair_folder, self.config_folder, *([] if keep_results else [self.results_folder])):
            shutil.rmtree(folder, ignore_errors=True)
