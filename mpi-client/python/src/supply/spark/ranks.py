"""Ranks that hold matrices of a Spark session, and run routines of MPI libraries on them."""

from __future__ import annotations

import os
import queue
import shutil
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from supply.errors import SupplierError
from supply.ranks.run_files import RunFiles
from supply.spark.cancellable import run_cancellable
from supply.spark.matrix import Matrix
from supply.spark.mpirun import Mpirun, MpirunEnded, command, files_of_mpi
from supply.spark.progress import RoutineProgress
from supply.spark.server_sockets import wait_for_sockets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_END_SECONDS = 15
# mpirun says why a rank has ended when it has ended the others.
_LAST_WORDS_SECONDS = 5


class Ranks:
    """MPI ranks that hold matrices of this session. Starts `supply-server` on this machine by mpirun.

    spark: the session, with executors on this machine only. It needs a free task slot for each rank while a matrix is
    sent. n: ranks.
    library: the shared library whose routines call() calls if it names no other.
    libraries: the folder of the libraries. server: the program. Not set: as installed, or SUPPLY_LIBRARIES and
    SUPPLY_SERVER of the environment.
    folder: in memory, for the rings. ring, block: bytes. timeout: seconds of each wait.

    As a context manager it ends the ranks. Raises SupplierError if they do not start.
    """

    def __init__(
        self,
        spark: Any,
        n: int,
        library: str = "libsupply_linalg.so",
        *,
        libraries: str | os.PathLike[str] | None = None,
        server: str | os.PathLike[str] | None = None,
        folder: str | os.PathLike[str] = "/dev/shm",
        ring: int | None = None,
        block: int | None = None,
        timeout: float = 120,
    ) -> None:
        nodes = spark._jvm.supply.python.Nodes.slots(spark._jsc.sc())
        if len(nodes) > 1:
            raise SupplierError(
                f"this session has executors on {len(nodes)} nodes ({', '.join(sorted(nodes))}), and Ranks starts "
                "ranks on this machine only: use a session with executors on one node"
            )
        self._spark = spark
        self._library = library
        self._dropped: list[Any] = []
        self._ended: queue.SimpleQueue[MpirunEnded] = queue.SimpleQueue()
        self._mpirun: Mpirun | None = None
        self._files = RunFiles(os.fspath(folder), f"supply-{uuid.uuid4().hex[:12]}", ("matrix",), n, ring, block)
        mapped_files, named_pipes = self._files.config("matrix")
        environment = {
            **files_of_mpi(self._files.pair_folder),
            "SUPPLY_MAPPED_FILES": mapped_files,
            "SUPPLY_NAMED_PIPES": named_pipes,
            "SUPPLY_TIMEOUT": str(timeout),
            # Ranks share the node's cores.
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        }
        folder_of_libraries = libraries or os.environ.get("SUPPLY_LIBRARIES")
        if folder_of_libraries:
            environment["SUPPLY_LIBRARIES"] = os.fspath(folder_of_libraries)
        program = _server(server)
        self._files.write_config()
        self._files.pair_folder.mkdir(mode=0o700)
        try:
            self._mpirun = Mpirun(command(n, None), [program], environment, self._ended.put)
            wait_for_sockets(self._files, self._ended, timeout)
            offload = spark._jvm.supply.python.Offload
            results_folder = str(self._files.results_folder)
            self._ranks = offload.ranks(
                spark._jsparkSession, n, mapped_files, named_pipes, None, results_folder, float(timeout)
            )
            self.ask(self._ranks.check)
        except BaseException:
            self._remove()
            raise

    def matrix(self, df: Any, features: str | list[str], key: str | None = None, sparse: bool = False) -> Matrix:
        """Sends the rows of a DataFrame to the ranks: a handle.

        features: a column of arrays of numbers or of Spark ML's vectors, or columns of numbers. key: a column that
        names the rows; it comes back with results. sparse: keep only the entries of vectors that are not 0, for
        routines that take sparse matrices. Raises SupplierError for nulls, NaN, or too little memory.
        """
        names = [features] if isinstance(features, str) else list(features)
        offload = self._spark._jvm.supply.python.Offload
        return self._held(self.ask(lambda: offload.matrix(self._ranks, df._jdf, names, key, sparse)))

    def call(self, routine: str, *arguments: Any, library: str | None = None, **parameters: Any) -> Any:
        """Calls a routine: its result, or a tuple of its results.

        arguments, parameters: matrices, integers, numbers and texts. Raises SupplierError with the rank's text.
        """
        values = [_plain(value) for value in arguments]
        named = {name: _plain(value) for name, value in parameters.items()}
        offload = self._spark._jvm.supply.python.Offload
        with RoutineProgress(routine, self._ranks.progress):
            results = self.ask(lambda: offload.call(self._ranks, library or self._library, routine, values, named))
        held = tuple(self._held(result) for result in results)
        return held[0] if len(held) == 1 else held

    def df_of(self, matrix: Matrix) -> DataFrame:
        """As matrix.to_df()."""
        from pyspark.sql import DataFrame

        return DataFrame(self.ask(matrix.java.toDF), self._spark)

    def close(self) -> None:
        """Ends the ranks. Their matrices are gone. Does nothing if they were closed."""
        try:
            self.ask(self._ranks.close)
        finally:
            self._remove()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._remove()

    def _held(self, matrix: Any) -> Matrix:
        return Matrix(self, matrix, self._dropped.append)

    def ask(self, call: Callable[[], Any]) -> Any:
        """What a call into the JVM returns that talks to the ranks. They drop first what Python has collected."""

        def forgetting() -> Any:
            while self._dropped:
                self._dropped.pop().forget()
            return call()

        try:
            return run_cancellable(self._spark.sparkContext, forgetting, self._ranks.cancel)
        except SupplierError as error:
            if not _is_end_of_ranks(error):
                raise
            raise SupplierError(f"{error}{self._last_words()}") from error

    def _last_words(self) -> str:
        """What mpirun and the ranks have printed last, if mpirun has ended."""
        try:
            mpirun = self._ended.get(timeout=_LAST_WORDS_SECONDS)
        except queue.Empty:
            return ""
        # For who waits for its end.
        self._ended.put(mpirun)
        return f"\nThe last output of mpirun and the ranks:\n{mpirun.text}"

    def _remove(self) -> None:
        mpirun, self._mpirun = self._mpirun, None
        if mpirun is not None:
            mpirun.stop()
            try:
                self._ended.get(timeout=_END_SECONDS)
            except queue.Empty:
                raise SupplierError("mpirun did not end within 15 s: end it by its process id") from None
        # DataFrames may still read what the ranks have written.
        self._files.remove(keep_results=True)


def _is_end_of_ranks(error: SupplierError) -> bool:
    java = getattr(error.__cause__, "java_exception", None)
    return java is not None and java.getClass().getSimpleName() == "RankEndedException"


def _plain(value: Any) -> Any:
    """The value as py4j takes it."""
    if isinstance(value, Matrix):
        return value.java
    return value.item() if hasattr(value, "item") else value


def _server(server: str | os.PathLike[str] | None) -> str:
    wanted = os.fspath(server or os.environ.get("SUPPLY_SERVER") or "supply-server")
    found = shutil.which(wanted)
    if found is None:
        raise SupplierError(
            f"there is no program '{wanted}': build libsupply with MPI and put supply-server on PATH, or set "
            "SUPPLY_SERVER"
        )
    return found
