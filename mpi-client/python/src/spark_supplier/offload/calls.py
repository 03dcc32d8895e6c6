"""The ranks of `Ranks` as the driver's JVM sees them: objects of py4j, or names over Spark Connect."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import tempfile
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

import numpy

from spark_supplier.driver.hub_key import KeyAgreement
from spark_supplier.driver.sessions import ClassicSession, ConnectSession, Session
from spark_supplier.errors import RunError
from spark_supplier.offload.rank_files import RankFiles

# By which Session.failure() finds the failure of a call, with the id of the ranks.
RANKS_PART = "ranks"

_PART_BYTES = 32 << 20


class Offload(Protocol):
    """Of one session. ranks: what ranks() has returned, which has the methods of supply.linalg.Ranks."""

    def ranks(self, files: RankFiles, timeout: float) -> Any:
        """Makes ranks known to the JVM."""

    def matrix(self, ranks: Any, df: Any, features: Sequence[str], key: str | None, sparse: bool) -> Any:
        """Sends rows. The matrix has the methods of spark_supplier.ml.Matrix."""

    def array(self, ranks: Any, values: numpy.ndarray, sparse: bool) -> Any:
        """Sends the rows of an array in their order. Their numbers are the keys."""

    def call(
        self, ranks: Any, library: str, routine: str, arguments: list[Any], parameters: dict[str, Any]
    ) -> Sequence[Any]:
        """Calls a routine. Returns matrices."""

    def df(self, matrix: Any) -> Any:
        """The rows of a matrix as a DataFrame."""

    def id_of(self, ranks: Any) -> str:
        """By which Session.failure() knows the ranks; or nothing, if exceptions themselves say what has failed."""


def offload_of(session: Session) -> Offload:
    if isinstance(session, ConnectSession):
        return _OverConnect(session)
    assert isinstance(session, ClassicSession)
    return _OfClassic(session)


class _OfClassic:
    def __init__(self, session: ClassicSession) -> None:
        self._spark = session.spark
        self._jvm = session.jvm.supply.api.Offload
        self._from_array = session.jvm.supply.linalg.FromArray

    def ranks(self, files: RankFiles, timeout: float) -> Any:
        return self._jvm.ranks(
            self._spark._jsparkSession, files.ranks, files.mapped_files, files.named_pipes, files.hosts,
            files.results_folder, float(timeout),
        )  # fmt: skip

    def matrix(self, ranks: Any, df: Any, features: Sequence[str], key: str | None, sparse: bool) -> Any:
        return self._jvm.matrix(ranks, df._jdf, list(features), key, sparse)

    def array(self, ranks: Any, values: numpy.ndarray, sparse: bool) -> Any:
        with tempfile.NamedTemporaryFile(prefix="supply-matrix-") as file:
            values.tofile(file)
            file.flush()
            return self._from_array.matrix(ranks, file.name, len(values), values[0].size, sparse)

    def call(
        self, ranks: Any, library: str, routine: str, arguments: list[Any], parameters: dict[str, Any]
    ) -> Sequence[Any]:
        results: Sequence[Any] = self._jvm.call(ranks, library, routine, arguments, parameters)
        return results

    def df(self, matrix: Any) -> Any:
        from pyspark.sql import DataFrame

        return DataFrame(matrix.toDF(), self._spark)

    def id_of(self, ranks: Any) -> str:  # noqa: ARG002  of the protocol
        return ""


class _OverConnect:
    def __init__(self, session: ConnectSession) -> None:
        self._session = session

    def ranks(self, files: RankFiles, timeout: float) -> Any:
        ranks = _Ranks(self._session, files.ranks)
        opened = ranks.ask_soon(
            "open", public=ranks.agreement.public, ranks=files.ranks, timeout=timeout,
            resultsFolder=files.results_folder,
            **{"mapped-files": _text(files.mapped_files), "named-pipes": _text(files.named_pipes)},
            hosts=None if files.hosts is None else _text(files.hosts), run=files.run,
        )  # fmt: skip
        ranks.agreement.agree(opened["public"])
        self._session.keys[ranks.id] = ranks.agreement
        return ranks

    def matrix(self, ranks: Any, df: Any, features: Sequence[str], key: str | None, sparse: bool) -> Any:
        name = uuid.uuid4().hex
        words = {"matrix": name, "features": list(features), "key": key, "sparse": sparse}
        options = {"ranks-call": "matrix", "ranks-id": ranks.id, "json": json.dumps(words)}
        df.write.format("supply").mode("append").options(**self._session.proven(options)).save()
        return _Matrix(ranks, ranks.ask_soon("sent", matrix=name)["matrix"])

    def array(self, ranks: Any, values: numpy.ndarray, sparse: bool) -> Any:
        # A task carries at most spark.rpc.message.maxSize.
        rows = max(1, _PART_BYTES // values[0].nbytes)
        parts = [self._rows(values, first, rows) for first in range(0, len(values), rows)]
        ordered = functools.reduce(lambda df, other: df.union(other), parts)
        ordered = ordered.repartitionByRange(ranks.count, "key").sortWithinPartitions("key")
        if sparse:
            from pyspark.ml.functions import array_to_vector

            ordered = ordered.select("key", array_to_vector("row").alias("row"))
        return self.matrix(ranks, ordered, ["row"], "key", sparse)

    def _rows(self, values: numpy.ndarray, first: int, rows: int) -> Any:
        """A DataFrame of these rows, which Spark gets as they are in memory."""
        import pyarrow

        part = values[first : first + rows]
        offsets = numpy.arange(len(part) + 1, dtype="int32") * part[0].size
        lists = pyarrow.ListArray.from_arrays(pyarrow.array(offsets), pyarrow.array(part.ravel()))
        keys = pyarrow.array(numpy.arange(first, first + len(part)))
        return self._session.spark.createDataFrame(pyarrow.table({"key": keys, "row": lists}))

    def call(
        self, ranks: Any, library: str, routine: str, arguments: list[Any], parameters: dict[str, Any]
    ) -> Sequence[Any]:
        found = ranks.ask(
            "call", library=library, routine=routine, arguments=[_value(ranks, value) for value in arguments],
            parameters={name: _value(ranks, value) for name, value in parameters.items()},
        )  # fmt: skip
        return [_Matrix(ranks, described) for described in found["matrices"]]

    def df(self, matrix: Any) -> Any:
        options = matrix.ranks.ask("rows", matrix=matrix.name)
        loaded = self._session.spark.read.format("supply").options(**options).load()
        # Else Spark Connect asks the ranks only when it is used.
        _ = loaded.schema
        return loaded

    def id_of(self, ranks: Any) -> str:
        return str(ranks.id)


def _text(path: str) -> str:
    """What a file says that both this program and the ranks have."""
    try:
        return os.fsdecode(pathlib.Path(path).read_bytes())
    except OSError as error:
        raise RunError(
            f"cannot read {path}: {error.strerror}. Over Spark Connect, this program reads the files that say where "
            "ranks are: run it where they lie, or copy them"
        ) from error


def _value(ranks: _Ranks, value: Any) -> Any:
    if not isinstance(value, _Matrix):
        return value
    if value.ranks is not ranks:
        raise RunError("a parameter is a matrix that belongs to other ranks")
    return {"matrix": value.name}


class _Ranks:
    """With the names of supply.linalg.Ranks, as py4j has them."""

    def __init__(self, session: ConnectSession, count: int) -> None:
        self._session = session
        self.count = count
        self.id = uuid.uuid4().hex
        self.agreement = KeyAgreement()

    def ask(self, call: str, **words: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.read(call, **words))
        return answer

    def ask_soon(self, call: str, **words: Any) -> dict[str, Any]:
        """Of calls for which the server asks no rank."""
        answer: dict[str, Any] = json.loads(self._session.read_soon(self._options(call, words)))
        return answer

    def read(self, call: str, **words: Any) -> bytes:
        return self._session.read(self._options(call, words))

    def _options(self, call: str, words: dict[str, Any]) -> dict[str, Any]:
        return {"ranks-call": call, "ranks-id": self.id, "json": json.dumps(words)}

    def attach(self, take_over: bool) -> None:
        self.ask("attach", takeOver=take_over)

    def cancel(self) -> None:
        self.ask_soon("cancel")

    def progress(self) -> float:
        # The server may be gone. Then the call itself says so.
        with contextlib.suppress(Exception):
            return float(self.ask_soon("progress")["done"])
        return 0.0

    def areGone(self) -> bool:
        return bool(self.ask_soon("gone")["gone"])

    def detach(self) -> None:
        self.ask("detach")

    def close(self) -> None:
        self.ask("close")


class _Matrix:
    """With the names of spark_supplier.ml.Matrix, as py4j has them."""

    def __init__(self, ranks: _Ranks, described: dict[str, Any]) -> None:
        self.ranks = ranks
        self.name = described["matrix"]
        self._described = described

    def rows(self) -> int:
        return int(self._described["rows"])

    def columns(self) -> int:
        return int(self._described["columns"])

    def isArray(self) -> bool:
        return bool(self._described["array"])

    def toBytes(self) -> bytes:
        size = self.rows() * self.columns() * 8
        found = bytearray()
        while len(found) < size:
            found += self.ranks.read("fetch", matrix=self.name, begin=len(found))
        return bytes(found)

    def drop(self) -> None:
        self.ranks.ask("drop", matrix=self.name)

    def forget(self) -> None:
        self.ranks.ask_soon("forget", matrix=self.name)
