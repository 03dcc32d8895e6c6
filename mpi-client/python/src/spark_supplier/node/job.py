"""What every rank of a run does, pickled by the driver: a function, or a script with `spark_supplier.data()`."""

from __future__ import annotations

import contextlib
import itertools
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_supplier.errors import RunError

if TYPE_CHECKING:
    from spark_supplier.node.rank_data import RankData

# Of waits within a run that have none, since the kernel reports deaths. (gloo has milliseconds of 32 bits.)
NO_LIMIT_SECONDS = 10 * 24 * 3600

# The name of the result that Supplier.run reads.
RESULTS = "results"


@dataclass
class Script:
    """path: of the script on the driver. content: its bytes."""

    path: str
    content: bytes

    @staticmethod
    def read(name: str | os.PathLike[str]) -> Script:
        path = os.path.abspath(name)
        try:
            return Script(path, _content(path))
        except OSError as error:
            raise RunError(f"cannot read the script {os.fspath(name)}: {error.strerror}") from error

    def run(self, words: list[str]) -> None:
        """As `python SCRIPT WORDS`: where it lies, with what lies beside it, if this node has it, else as a copy."""
        with contextlib.suppress(OSError):
            if _content(self.path) == self.content:
                self._run(self.path, words)
                return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, os.path.basename(self.path))
            with open(path, "wb") as file:
                file.write(self.content)
            self._run(path, words)

    @staticmethod
    def _run(path: str, words: list[str]) -> None:
        folder, others = os.path.dirname(path), set(sys.modules)
        sys.argv = [path, *words]
        sys.path.insert(0, folder)
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
        finally:
            # Another call of this process may have a script with other modules of these names beside it.
            for name in set(sys.modules) - others:
                if _is_beside(getattr(sys.modules[name], "__file__", None), folder):
                    del sys.modules[name]


def _is_beside(module: str | None, folder: str) -> bool:
    """Not if the module is of a virtual environment there."""
    return module is not None and module.startswith(f"{folder}{os.sep}") and "-packages" not in module


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


_current: RankData | None = None


def data() -> RankData:
    """This rank's data set, in a script that Supplier.run has started."""
    if _current is None:
        raise RunError("spark_supplier.data() is for a script that Supplier.run starts on a rank")
    return _current


def set_current_data(dataset: RankData | None) -> None:
    global _current
    _current = dataset


@dataclass
class DataSpec:
    """kind: of the pairs, as of RunFiles. options: of Dataset. epochs: in all.

    validation: of the second DataFrame. results: the schema of the rows that ranks write, as text; None: they write
    none. exchange_over: "mpi" or "torch", if the ranks exchange elements; None: they do not. is_global: whether
    batch_size is of all ranks together. share: as of Rows, or the number of functions. functions: of the call.
    """

    kind: str
    options: dict[str, Any]
    epochs: int
    validation: DataSpec | None = None
    results: str | None = None
    exchange_over: str | None = None
    is_global: bool = False
    share: int | str | None = None
    functions: int = 1

    @property
    def reader(self) -> int:
        """The number of this rank in its group."""
        if self.readers == 1:
            # Also of testing.data(), whose process is no rank.
            return 0
        return int(os.environ["LOCAL_RANK"]) if self.share == "node" else int(os.environ["RANK"]) % self.readers

    @property
    def readers(self) -> int:
        """The ranks of this rank's group."""
        return int(os.environ["LOCAL_WORLD_SIZE"]) if self.share == "node" else int(self.share or 1)


@dataclass
class Job:
    """What a rank calls: its function of several, or a script.

    functions: rank r calls number r % len(functions). args, kwargs: of the function after the data. A script gets args
    as words, and kwargs as --name value: a list as several values, True as --name alone, and False and None not at all.
    """

    functions: list[Callable[..., Any]]
    script: Script | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    data: DataSpec

    def run(self, data: RankData, number: int = 0) -> Any:
        if self.functions:
            return self.functions[number](data, *self.args, **self.kwargs)
        assert self.script is not None
        self.script.run([*map(str, self.args), *itertools.chain.from_iterable(map(_words, self.kwargs.items()))])
        return None


def _words(option: tuple[str, Any]) -> list[str]:
    name, value = f"--{option[0].replace('_', '-')}", option[1]
    if value is None or isinstance(value, bool):
        return [name] if value else []
    return [name, *map(str, value if isinstance(value, (list, tuple)) else [value])]
