"""The ranks of `MatrixRanks`, and their matrices, as the driver's JVM knows them: by names."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from spark_supplier.driver.hub_key import KeyAgreement
from spark_supplier.driver.sessions import Session
from spark_supplier.errors import RunError
from spark_supplier.launch import host_file as host_files
from spark_supplier.node.run_files import launch_errors

# By which Session.failure() finds the failure of a call, with the id of the ranks.
RANKS_PART = "ranks"

_PART_BYTES = 32 << 20


@dataclass(frozen=True)
class RankFiles:
    """hosts: the host file; None: all ranks are on this node. results_folder: beginning of names of folders.

    run: at the hub, of ranks that the program has started.
    """

    ranks: int
    mapped_files: str
    named_pipes: str
    hosts: str | None
    results_folder: str
    run: str | None = None


def find_rank_files(
    ranks: int | None,
    mapped_files: str | os.PathLike[str] | None,
    named_pipes: str | os.PathLike[str] | None,
    hosts: str | os.PathLike[str] | None,
    results_folder: str,
) -> RankFiles:
    """None: as SUPPLY_RANKS, SUPPLY_MAPPED_FILES, SUPPLY_NAMED_PIPES and SUPPLY_HOSTS say."""
    host_file = hosts or os.environ.get("SUPPLY_HOSTS")
    number = ranks or os.environ.get("SUPPLY_RANKS") or (_slots(host_file) if host_file else None)
    files = mapped_files or os.environ.get("SUPPLY_MAPPED_FILES"), named_pipes or os.environ.get("SUPPLY_NAMED_PIPES")
    for value, name, variable in (
        (number, "ranks", "SUPPLY_RANKS"),
        (files[0], "mapped_files", "SUPPLY_MAPPED_FILES"),
        (files[1], "named_pipes", "SUPPLY_NAMED_PIPES"),
    ):
        if not value:
            raise RunError(
                f"MatrixRanks.attach does not know the ranks: set {name}= or {variable}, as the ranks have it, or "
                "start the program by launch/supply-run --serve"
            )
    try:
        count = int(number or 0)
    except ValueError:
        raise RunError(f"SUPPLY_RANKS is '{number}', must be a number of ranks") from None
    mapped, pipes = map(_absolute, files)
    return RankFiles(count, mapped, pipes, _absolute(host_file) if host_file else None, results_folder)


def _slots(path: str | os.PathLike[str]) -> int:
    with launch_errors():
        return sum(slots for _, slots in host_files.read(path))


def _absolute(path: str | os.PathLike[str] | None) -> str:
    """Spark's tasks have another working folder."""
    return os.path.abspath(path or "")


class Ranks:
    """The calls of supply/linalg/RanksCalls.scala. Makes ranks known to the JVM."""

    def __init__(self, session: Session, files: RankFiles, timeout: float) -> None:
        self._session = session
        self._count = files.ranks
        self.id = uuid.uuid4().hex
        self._agreement = KeyAgreement()
        named = {"mapped_files": files.mapped_files, "named_pipes": files.named_pipes, "hosts": files.hosts}
        # The server has other files.
        texts = {name: _text(path) for name, path in named.items() if session.is_connect and path is not None}
        opened = self._ask_soon(
            "ranks-open", public=self._agreement.public, count=files.ranks, timeout=timeout,
            results_folder=files.results_folder, run=files.run, texts=texts,
            **{name: name if name in texts else path for name, path in named.items()},
        )  # fmt: skip
        self._agreement.agree(opened["public"])
        session.keys[self.id] = self._agreement

    def _ask(self, name: str, **words: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.read(name, **words))
        return answer

    def _ask_soon(self, name: str, **words: Any) -> dict[str, Any]:
        """Of calls for which the JVM asks no rank."""
        return self._session.ask(name, ranks=self.id, **words)

    def read(self, name: str, **words: Any) -> bytes:
        return self._session.call(name, {"ranks": self.id, **words}, None)

    def attach(self, take_over: bool) -> None:
        self._ask("ranks-attach", take_over=take_over)

    def cancel(self) -> None:
        self._ask_soon("ranks-cancel")

    def are_gone(self) -> bool:
        return bool(self._ask_soon("ranks-gone")["gone"])

    def detach(self) -> None:
        self._ask("ranks-detach")

    def close(self) -> None:
        self._ask("ranks-close")

    def matrix(self, df: Any, features: Sequence[str], key: str | None, sparse: bool) -> Held:
        """Sends rows."""
        name = uuid.uuid4().hex
        words = {"ranks": self.id, "matrix": name, "features": list(features), "key": key, "sparse": sparse}
        df.write.format("supply").mode("append").options(**self._session.options("matrix-send", words)).save()
        return self._sent(name)

    def mllib(self, linalg: Any, matrix: Any, sparse: bool) -> Held:
        """Sends the rows of a distributed matrix of the JVM. linalg: its package supply.linalg."""
        name = uuid.uuid4().hex
        linalg.FromMLlib.send(self.id, name, matrix, sparse)
        return self._sent(name)

    def _sent(self, name: str) -> Held:
        return Held(self, self._ask_soon("matrix-sent", matrix=name))

    def array(self, values: numpy.ndarray, sparse: bool) -> Held:
        """Sends the rows of an array in their order. Their numbers are the keys."""
        if self._session.is_connect:
            return self._array_of_frames(values, sparse)
        with tempfile.NamedTemporaryFile(prefix="supply-matrix-") as file:
            values.tofile(file)
            file.flush()
            shape = {"rows": len(values), "columns": values[0].size}
            return Held(
                self, self._ask("matrix-array", matrix=uuid.uuid4().hex, file=file.name, sparse=sparse, **shape)
            )

    def _array_of_frames(self, values: numpy.ndarray, sparse: bool) -> Held:
        # A task carries at most spark.rpc.message.maxSize.
        rows = max(1, _PART_BYTES // values[0].nbytes)
        parts = [self._rows(values, first, rows) for first in range(0, len(values), rows)]
        ordered = functools.reduce(lambda df, other: df.union(other), parts)
        ordered = ordered.repartitionByRange(self._count, "key").sortWithinPartitions("key")
        if sparse:
            from pyspark.ml.functions import array_to_vector

            ordered = ordered.select("key", array_to_vector("row").alias("row"))
        return self.matrix(ordered, ["row"], "key", sparse)

    def _rows(self, values: numpy.ndarray, first: int, rows: int) -> Any:
        """A DataFrame of these rows, which Spark gets as they are in memory."""
        import pyarrow

        part = values[first : first + rows]
        offsets = numpy.arange(len(part) + 1, dtype="int32") * part[0].size
        lists = pyarrow.ListArray.from_arrays(pyarrow.array(offsets), pyarrow.array(part.ravel()))
        keys = pyarrow.array(numpy.arange(first, first + len(part)))
        return self._session.spark.createDataFrame(pyarrow.table({"key": keys, "row": lists}))

    def call(self, library: str, routine: str, arguments: list[Any], parameters: dict[str, Any]) -> list[Held]:
        """Calls a routine."""
        found = self._ask(
            "ranks-call", library=library, routine=routine, arguments=[self._value(value) for value in arguments],
            parameters={name: self._value(value) for name, value in parameters.items()},
        )  # fmt: skip
        return [Held(self, described) for described in found["matrices"]]

    def _value(self, value: Any) -> Any:
        if not isinstance(value, Held):
            return value
        if value.ranks is not self:
            raise RunError("a parameter is a matrix that belongs to other ranks")
        return {"matrix": value.name}

    def df(self, matrix: Held) -> Any:
        """The rows of a matrix as a DataFrame."""
        options = self._ask("matrix-rows", matrix=matrix.name)
        loaded = self._session.spark.read.format("supply").options(**options).load()
        # Else Spark Connect asks the ranks only when it is used.
        _ = loaded.schema
        return loaded


def _text(path: str) -> str:
    """What a file says that both this program and the ranks have."""
    try:
        return os.fsdecode(pathlib.Path(path).read_bytes())
    except OSError as error:
        raise RunError(
            f"cannot read {path}: {error.strerror}. Over Spark Connect, this program reads the files that say where "
            "ranks are: run it where they lie, or copy them"
        ) from error


class Held:
    """A matrix that ranks hold."""

    def __init__(self, ranks: Ranks, described: Mapping[str, Any]) -> None:
        self.ranks = ranks
        self.name = described["matrix"]
        self.shape: tuple[int, int] = (described["rows"], described["columns"])
        self.is_array: bool = described["array"]

    def read(self) -> bytes:
        size = self.shape[0] * self.shape[1] * 8
        found = bytearray()
        while len(found) < size:
            found += self.ranks.read("matrix-fetch", matrix=self.name, begin=len(found))
        return bytes(found)

    def drop(self) -> None:
        self.ranks.read("matrix-drop", matrix=self.name)

    def forget(self) -> None:
        """The next command to the ranks drops it."""
        self.ranks._ask_soon("matrix-forget", matrix=self.name)
