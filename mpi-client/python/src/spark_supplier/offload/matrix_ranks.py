"""Ranks that hold matrices of a Spark session, and run routines of MPI libraries on them."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spark_supplier.arguments import optional_size, seconds, shown, whole_number
from spark_supplier.driver.frame_checks import check_frame
from spark_supplier.driver.sessions import ClassicSession, Session, run_cancellable, session_of
from spark_supplier.errors import RunError, RunTimeoutError
from spark_supplier.node.run_files import RunFiles
from spark_supplier.offload.calls import RANKS_PART, Held, RankFiles, Ranks, find_rank_files
from spark_supplier.offload.matrix import Matrix, array_of, is_array, java_matrix
from spark_supplier.offload.server import Server
from spark_supplier.settings import as_run_errors, memory_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTACH_POLL_SECONDS = 0.1
# A server that cannot start says why.
_EXPLAIN_SECONDS = 10


class MatrixRanks:
    """MPI ranks that hold matrices of a Spark session. Starts `supply-server` by mpirun; attach() does not.

    As a context manager it ends the ranks.

    Parameters
    ----------
    spark : SparkSession
        It needs a free task slot for each rank, on the rank's node, while a matrix is sent.
    ranks : int
        Their number.
    library : str, default "libsupply_linalg.so"
        The shared library whose routines call() calls if it names no other.
    host_file : str or path, optional
        The nodes of the ranks, in Open MPI's format. Default: those of Slurm's job, else this machine.
    libraries : str or path, optional
        The folder of the libraries, at the same path on every node. Default: as installed, or SUPPLY_LIBRARIES of the
        environment.
    server : str or path, optional
        The program, at the same path on every node, and so is this Python. Default: supply-server on PATH, or
        SUPPLY_SERVER of the environment.
    folder : str or path, default "/dev/shm"
        In memory, for the buffers.
    ring, block : int or str, optional
        Sizes of a rank's buffer and of a block in it: bytes, or a text as "64MiB". Default: four blocks of 2 MiB.
    timeout : float, default 120
        Seconds of each wait.

    Raises
    ------
    RunError
        An option is wrong, or the ranks do not start.

    Examples
    --------
    ::

        with MatrixRanks(spark, ranks=4) as ranks:
            a = ranks.matrix(df, "features", key="id")
            left, values, right = ranks.call("truncated_svd", a, k=10)
    """

    def __init__(
        self,
        spark: Any,
        ranks: int,
        library: str = "libsupply_linalg.so",
        *,
        host_file: str | os.PathLike[str] | None = None,
        libraries: str | os.PathLike[str] | None = None,
        server: str | os.PathLike[str] | None = None,
        folder: str | os.PathLike[str] = "/dev/shm",
        ring: int | str | None = None,
        block: int | str | None = None,
        timeout: float = 120,
    ) -> None:
        session = _checked(spark, ranks, folder, timeout)
        with as_run_errors():
            files = RunFiles(
                os.fspath(folder),
                f"supply-{uuid.uuid4().hex[:12]}",
                ("matrix",),
                ranks,
                optional_size("ring", ring),
                optional_size("block", block),
            )
        mapped_files, named_pipes = files.config("matrix")
        environment = {
            "SUPPLY_MAPPED_FILES": mapped_files,
            "SUPPLY_NAMED_PIPES": named_pipes,
            "SUPPLY_TIMEOUT": str(timeout),
            # Ranks share the node's cores.
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        }
        folder_of_libraries = libraries or os.environ.get("SUPPLY_LIBRARIES")
        if folder_of_libraries:
            environment["SUPPLY_LIBRARIES"] = os.path.abspath(folder_of_libraries)
        started = Server(session, ranks, host_file, _server(server), files, environment, timeout)
        rank_files = RankFiles(
            ranks, mapped_files, named_pipes, started.host_file, str(files.results_folder), files.name
        )
        self._begin(session, library, rank_files, started, timeout, take_over=False)

    @classmethod
    def attach(
        cls,
        spark: Any,
        ranks: int | None = None,
        library: str = "libsupply_linalg.so",
        *,
        mapped_files: str | os.PathLike[str] | None = None,
        named_pipes: str | os.PathLike[str] | None = None,
        host_file: str | os.PathLike[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
        timeout: float = 120,
        take_over: bool = False,
    ) -> MatrixRanks:
        """Ranks that the program does not start: those of launch/supply-run --serve, launch/run-ranks, mpirun or srun.

        As a context manager it drops its matrices, and the ranks wait for another program. close(end_ranks=True) ends
        them.

        Parameters
        ----------
        spark, library
            As for MatrixRanks.
        ranks, mapped_files, named_pipes, host_file : optional
            As the ranks have them. Default: SUPPLY_RANKS (or the slots of host_file), SUPPLY_MAPPED_FILES,
            SUPPLY_NAMED_PIPES and SUPPLY_HOSTS of the environment. Without a host file, all ranks are on this node.
        folder : str or path, optional
            In memory, on each node, for the rows of Matrix.to_df(). Default: SUPPLY_RESULTS_FOLDER, else /dev/shm.
        timeout : float, default 120
            Seconds of each wait, also for the ranks to start.
        take_over : bool, default False
            A program that is attached to the ranks loses its matrices; otherwise that is an error.

        Returns
        -------
        MatrixRanks
        """
        in_memory = folder or os.environ.get("SUPPLY_RESULTS_FOLDER") or "/dev/shm"
        session = _checked(spark, 1 if ranks is None else ranks, in_memory, timeout)
        results_folder = f"{os.fspath(in_memory)}/supply-{uuid.uuid4().hex[:12]}-results"
        rank_files = find_rank_files(ranks, mapped_files, named_pipes, host_file, results_folder)
        attached = cls.__new__(cls)
        attached._begin(session, library, rank_files, None, timeout, take_over)
        return attached

    def _begin(
        self, session: Session, library: str, ranks: RankFiles, server: Server | None, timeout: float, take_over: bool
    ) -> None:
        self._session = session
        self._count = ranks.ranks
        self._library = library
        self._dropped: list[Held] = []
        self._server = server
        self._is_open = False
        try:
            self._ranks = self._attached(ranks, timeout, take_over)
            self._is_open = True
        except BaseException:
            self._remove()
            raise

    def _attached(self, files: RankFiles, timeout: float, take_over: bool) -> Ranks:
        """Waits for the ranks."""
        end = time.monotonic() + timeout
        while True:
            ranks = run_cancellable(self._session, lambda: Ranks(self._session, files, timeout))
            try:
                run_cancellable(self._session, lambda: ranks.attach(take_over), ranks.cancel)  # noqa: B023  now
                return ranks
            except Exception as error:
                failure = self._session.failure(error.__cause__ or error)
                is_end = failure.name == "RankEndedException"
                is_retried = is_end and time.monotonic() < end
                if self._server is not None:
                    # Files go with their ranks, whose end mpirun may say late.
                    explained = timeout if failure.is_of_missing_file else _EXPLAIN_SECONDS
                    self._server.check(0 if is_retried else explained)
                if is_end and not is_retried:
                    raise RunTimeoutError(str(error)) from error.__cause__
                if not is_retried:
                    raise
            time.sleep(_ATTACH_POLL_SECONDS)

    @property
    def _jvm(self) -> Any:
        """The view of the session's JVM."""
        if not isinstance(self._session, ClassicSession):
            raise RunError(
                "distributed matrices of pyspark.mllib are RDDs, which Spark Connect does not have: pass a DataFrame, "
                "and take to_df()"
            )
        return self._session.jvm

    def matrix(
        self, df: Any, features: str | list[str] | None = None, key: str | None = None, sparse: bool = False
    ) -> Matrix:
        """Sends rows to the ranks: of a DataFrame, of a distributed matrix of pyspark.mllib, or of an array.

        A distributed matrix has neither features nor key: an IndexedRowMatrix, CoordinateMatrix or BlockMatrix has its
        rows in the order of their indices, which are the keys, and a RowMatrix has its rows in their order. Spark
        Connect has none.

        Parameters
        ----------
        df : DataFrame, distributed matrix, array or tensor
            An array is one of numpy, PyTorch, CuPy, JAX, or another library with DLPack, also on a device, of shape
            (rows, columns) or (rows,). It has neither features nor key: its rows keep their order, and their numbers
            are the keys. It goes through the driver's memory.
        features : str or list of str, optional
            Of a DataFrame: a column of arrays of numbers or of Spark ML's vectors, or columns of numbers.
        key : str, optional
            Of a DataFrame: a column that names the rows; it comes back with results.
        sparse : bool, default False
            Keep only the entries of vectors that are not 0, for routines that take sparse matrices.

        Returns
        -------
        Matrix

        Raises
        ------
        RunError
            There are nulls or NaN, or too little memory.
        """
        if is_array(df):
            if features is not None or key is not None:
                raise RunError("an array has rows, and their numbers are the keys: leave out features and key")
            values = array_of(df)
            return self._held(self._ask(lambda: self._ranks.array(values, sparse)))
        mllib = java_matrix(df)
        if mllib is not None and (features is not None or key is not None):
            raise RunError(f"a {type(df).__name__} has rows and indices of its own: leave out features and key")
        if mllib is not None:
            linalg = self._jvm.supply.linalg
            return self._held(self._ask(lambda: self._ranks.mllib(linalg, mllib, sparse)))
        if features is None:
            raise RunError("features is not set: name the columns of the DataFrame that are the rows of the matrix")
        check_frame(df)
        names = [features] if isinstance(features, str) else list(features)
        return self._held(self._ask(lambda: self._ranks.matrix(df, names, key, sparse)))

    def call(self, routine: str, *arguments: Any, library: str | None = None, **parameters: Any) -> Any:
        """Calls a routine of a library on all ranks.

        Parameters
        ----------
        routine : str
            Its name.
        *arguments, **parameters : Matrix, int, float or str
            As the routine takes them (docs/OFFLOAD.md).
        library : str, optional
            The shared library. Default: that of the ranks.

        Returns
        -------
        Matrix or tuple of Matrix
            Its result, or its results.

        Raises
        ------
        RunError
            With the text of the rank that has failed.
        """
        values = [_plain(value) for value in arguments]
        named = {name: _plain(value) for name, value in parameters.items()}
        results = self._ask(lambda: self._ranks.call(library or self._library, routine, values, named))
        held = tuple(self._held(result) for result in results)
        return held[0] if len(held) == 1 else held

    def _df_of(self, matrix: Matrix) -> DataFrame:
        """As matrix.to_df()."""
        df: DataFrame = self._ask(lambda: self._ranks.df(matrix._held))
        return df

    def _set_on(self, estimator: Any) -> Any:
        """The estimator of spark_supplier.ml, or a copy of it, which fits on these ranks."""
        if not self._session.is_connect:
            estimator._java_obj.setRanks(self._jvm.supply.linalg.NamedRanks.apply(self._ranks.id).ranks())
            return estimator
        from pyspark.ml.param import Param

        copied = estimator.copy()
        # Of the server's class only: it is not saved.
        copied._paramMap[Param(copied, "ranksId", "")] = self._ranks.id
        return copied

    def close(self, end_ranks: bool = False) -> None:
        """Drops all matrices. Ends the ranks if this object has started them. Does nothing if it was closed.

        Parameters
        ----------
        end_ranks : bool, default False
            Also end ranks that it has not started.
        """
        if not self._is_open:
            return
        try:
            self._ask(self._ranks.close if end_ranks or self._server is not None else self._ranks.detach)
        finally:
            self._is_open = False
            self._remove()

    def _require_open(self) -> None:
        if not self._is_open:
            raise RunError("all matrices are gone: these ranks are closed")

    def __enter__(self) -> MatrixRanks:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._server is not None:
            self._is_open = False
            self._remove()
        else:
            # The first error counts.
            with contextlib.suppress(RunError):
                self.close()

    def __repr__(self) -> str:
        return f"<MatrixRanks: {self._count} ranks, {'open' if self._is_open else 'closed'}>"

    def _held(self, matrix: Held) -> Matrix:
        return Matrix(self, matrix, self._dropped.append)

    def _ask(self, call: Callable[[], Any]) -> Any:
        """What a call into the JVM returns that talks to the ranks. They drop first what Python has collected."""

        def forgetting() -> Any:
            while self._dropped:
                self._dropped.pop().forget()
            return call()

        self._require_open()
        self._session.check_running("the session of these ranks")
        try:
            return run_cancellable(self._session, forgetting, self._ranks.cancel, self._ranks.id, RANKS_PART)
        except RunError as error:
            # A rank that refuses rows ends its run, too.
            if not self._ranks.are_gone():
                raise
            last_words = "" if self._server is None else self._server.last_words()
            raise type(error)(f"{error}{last_words}") from error

    def _remove(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()


def _checked(spark: Any, ranks: int, folder: str | os.PathLike[str], timeout: float) -> Session:
    """The session. Refuses one that cannot be used, and wrong values of options."""
    with as_run_errors():
        whole_number("ranks", ranks, 1)
        seconds("timeout", timeout)
        memory_folder("folder", folder)
    session = session_of(spark)
    session.check("the session")
    return session


def _plain(value: Any) -> Any:
    """The value as Ranks.call() takes it."""
    if isinstance(value, Matrix):
        return value._held
    if getattr(value, "shape", ()):
        raise RunError(f"an argument is an array of shape {tuple(value.shape)}: make a matrix of it by matrix()")
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool) or not isinstance(plain, (int, float, str)):
        fix = "leave it out, so that it has its default" if plain is None else "give a matrix, a number or a text"
        raise RunError(f"an argument is {shown(value)}: {fix}")
    return plain


def _server(server: str | os.PathLike[str] | None) -> str:
    wanted = os.fspath(server or os.environ.get("SUPPLY_SERVER") or "supply-server")
    found = shutil.which(wanted)
    if found is None:
        raise RunError(
            f"there is no program '{wanted}': build libsupply with MPI and put supply-server on PATH, or set "
            "SUPPLY_SERVER"
        )
    return found
