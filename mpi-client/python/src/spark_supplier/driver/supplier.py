"""Supplier: one call that trains on a DataFrame."""

from __future__ import annotations

import importlib.util
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from spark_supplier.arguments import optional_size
from spark_supplier.driver.attempts import CallCheckpoints, Checkpoint, Restarts, partitions_of, result_of
from spark_supplier.driver.call_rows import CallRows
from spark_supplier.driver.elsewhere import ElsewhereLauncher, check_rows
from spark_supplier.driver.failures import NotAgain
from spark_supplier.driver.function_checks import check_arguments, functions_of, pickled
from spark_supplier.driver.launcher import Launcher, TorchLauncher
from spark_supplier.driver.mpirun_launcher import MpirunLauncher
from spark_supplier.driver.placement import wait_for_ranks
from spark_supplier.driver.rank_pool import RankPool, Wanted, WarmRanks
from spark_supplier.driver.results import RunResult
from spark_supplier.driver.run import Limits, Run
from spark_supplier.driver.sessions import Session
from spark_supplier.driver.statistics import RunStatistics
from spark_supplier.errors import RunConfigError, RunError
from spark_supplier.node.environment import OMP_NUM_THREADS
from spark_supplier.node.job import Job, Script
from spark_supplier.node.messages import Attempt
from spark_supplier.settings import Checkpoints, Elsewhere, Mpirun, Rows, SupplierOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from spark_supplier.node.rank_data import RankData

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")
_Returned = TypeVar("_Returned", covariant=True)


class _WithKeywords(Protocol[_Returned]):
    """A function with **kwargs, which no Concatenate takes."""

    def __call__(self, data: RankData, **kwargs: Any) -> _Returned: ...


# spark-submit sets it, and OMP_NUM_THREADS to the driver's cores, in the Python that it starts.
_OF_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"


def rank_environment(session: Session, given: Mapping[str, str]) -> dict[str, str]:
    """Environment variables for the ranks. given: those that the user has given for them."""
    # The lines that ranks print are UTF-8, whatever the locale of their node.
    environment = {"PYTHONUTF8": "1"}
    threads = session.setting(f"spark.executorEnv.{OMP_NUM_THREADS}") or _of_driver(session)
    if threads:
        environment[OMP_NUM_THREADS] = threads
    return {**environment, **given}


def _of_driver(session: Session) -> str | None:
    """OMP_NUM_THREADS of the user in the driver's environment, if ranks have that."""
    if not session.is_local:
        return None
    if session.is_connect or _OF_SPARK_SUBMIT in os.environ:
        return session.threads_of_driver
    return os.environ.get(OMP_NUM_THREADS)


def exchange_over(how: str, launcher: str | Mpirun | Elsewhere, backend: str | None) -> str | None:
    """What the ranks exchange rows over: "mpi" or "torch". None: they do not."""
    if how != "all":
        return None
    if isinstance(launcher, Mpirun):
        if importlib.util.find_spec("mpi4py") is None:
            raise RunConfigError(
                "with shuffle='all' and Mpirun() the ranks exchange rows over mpi4py, which is not installed: install "
                "it on every node, or leave launcher out"
            )
        return "mpi"
    if backend is None:
        raise RunConfigError(
            "with shuffle='all' the ranks exchange rows over torch.distributed: leave backend=None out, or use "
            "launcher=Mpirun()"
        )
    return "torch"


def _rows_alone(first: Any, second: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments of run() if the ranks have a program of their own."""
    if second is not None or args or kwargs:
        raise RunConfigError(
            "with launcher='elsewhere' the ranks have their own program: run(rows), and there spark_supplier.connect()"
        )
    return first


class Supplier(SupplierOptions):
    """Starts ranks where Spark's executors are, and supplies DataFrames to them.

    In a `with` block the ranks' processes stay from call to call, with what they have imported, and with their GPUs.
    The first call starts them. A call that fails, also by Ctrl-C, ends them all, and the next one starts others; so do
    ranks or executors that have gone meanwhile, idle_timeout, and another run of the session that needs their task
    slots. Between calls they hold one slot on each node, and they end with the block, the session and the driver. Calls
    of several threads take turns. A pickled Supplier has no ranks: enter it again.

    Parameters
    ----------
    ranks : int
        Number of ranks on all nodes together. Spark needs a task slot for each (two with validation), and with
        launcher="torch" one on each node to start its ranks.
    launcher : {"torch", "here", "elsewhere"}, Mpirun or Elsewhere
        "torch": Spark starts the ranks where its executors are. `Mpirun`: the driver starts them by mpirun. "here": the
        one rank is this thread of the program, for breakpoints and for a first print. It needs Spark in local mode. The
        rows and all of `data` are as elsewhere; "auto" then initializes no backend. "elsewhere": something else starts
        the ranks, on nodes without Spark (see Elsewhere); run() then gets no function, and does not keep ranks.
    backend : str, optional
        torch.distributed is initialized with it before a call. "auto" is gloo, and nccl for tensors on GPUs if each
        rank has one. None: the function initializes it, or does not need it.
    restarts : int
        How often a call starts its ranks again when one of them, an executor or a node fails. They begin from the
        newest checkpoint of the call, or without one from the beginning.
    min_ranks : int, optional
        If Spark has too few slots, also after start_timeout, a call starts with as many ranks as fit, but at least
        these. Default: only with all.
    checkpoints : folder or Checkpoints, optional
        Where `data.save(state)` saves. Calls with results= save none: rows that ranks wrote before a checkpoint would
        be lost.
    start_timeout : float
        Seconds until Spark has the task slots, and until all ranks have started. Neither Spark's work on the rows nor
        the function count.
    stall_timeout : float, optional
        Seconds that a rank may take from one block to the next, and after the last one. Waits for Spark do not count.
        The ranks then print where they are. Default: as long as they like.
    idle_timeout : float
        Seconds after which ranks end that wait for a call.
    ring, block : int or str, optional
        Sizes of a rank's ring and of a block: bytes, or a text as "64MiB". Default: four blocks of 2 MiB.
    folder : str or path
        Shared memory of executors and ranks on each node.
    environment : dict, optional
        Environment variables for the ranks.
    on_report : function, optional
        Called with each data.report() of rank 0, soon after it, on the thread of the call: with a dict as in
        statistics.history. What it raises ends the ranks, and is raised by the call. Meanwhile nothing else is noticed.
        It cannot call this Supplier, if that keeps its ranks.

    Raises
    ------
    RunError
        An option is wrong: it is also a ValueError.

    Examples
    --------
    >>> from spark_supplier import Supplier, session
    >>> def count(data, factor):
    ...     return factor * sum(len(batch["id"]) for batch in data)
    >>> with Supplier(ranks=1, backend=None) as supplier:
    ...     supplier.run(count, session().range(10), 2)
    ...     supplier.run(count, session().range(20), factor=3)
    20
    60
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._warm = WarmRanks(self.idle_timeout)
        # Of ranks elsewhere: also those of a restart have it.
        self._made_key = secrets.token_urlsafe(24)
        self._statistics: RunStatistics | None = None

    def __enter__(self) -> Supplier:
        keeps = self.launcher != "here" and not isinstance(self.launcher, Elsewhere)
        if keeps and not self._warm.open():
            raise RunError("this Supplier keeps its ranks already: make another one for a `with` block within its own")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launcher_of(self, session: Session, ranks: int, share: int) -> Launcher:
        if isinstance(self.launcher, Elsewhere):
            return ElsewhereLauncher(session, ranks, self.launcher, self._made_key)
        if isinstance(self.launcher, Mpirun):
            return MpirunLauncher(ranks, self.launcher.host_file, share=share)
        return TorchLauncher(ranks, share)

    def close(self) -> None:
        """Ends the ranks that wait for a call, as leaving the `with` block does. There can be no other call."""
        self._warm.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_warm": None, "_statistics": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "_warm": WarmRanks(state["idle_timeout"])})

    @property
    def statistics(self) -> RunStatistics | None:
        """How the time of the last call was spent, also of one that has failed, and what its rank 0 reported.

        None: there was no call. After a restart, it is of the last attempt. The logger spark_supplier has its sentence
        at the end of each call (level INFO).
        """
        return self._statistics

    @overload
    def run(
        self,
        function: Callable[..., _Value],
        rows: DataFrame | Rows,
        /,
        *args: Any,
        results: str | StructType,
        resume: bool = False,
        **kwargs: Any,
    ) -> RunResult[_Value]: ...

    @overload
    def run(
        self, function: Callable[..., _Value], rows: DataFrame | Rows, /, *args: Any, resume: bool, **kwargs: Any
    ) -> _Value: ...

    @overload
    def run(
        self,
        function: Callable[Concatenate[RankData, _Arguments], _Value],
        rows: DataFrame | Rows,
        /,
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Value: ...

    @overload
    def run(self, function: _WithKeywords[_Value], rows: DataFrame | Rows, /, *args: Any, **kwargs: Any) -> _Value: ...

    @overload
    def run(
        self,
        function: Sequence[Callable[..., Any]],
        rows: DataFrame | Rows,
        /,
        *args: Any,
        results: str | StructType | None = None,
        **kwargs: Any,
    ) -> list[Any]: ...

    @overload
    def run(
        self,
        function: str | os.PathLike[str],
        rows: DataFrame | Rows,
        /,
        *args: Any,
        results: str | StructType | None = None,
        resume: bool = False,
        **kwargs: Any,
    ) -> Any: ...

    @overload
    def run(
        self, rows: DataFrame | Rows, /, *, results: str | StructType | None = None, resume: bool = False
    ) -> RunResult[None] | None: ...

    def run(  # type: ignore[misc]
        self,
        function: Callable[..., Any] | Sequence[Callable[..., Any]] | str | os.PathLike[str] | DataFrame | Rows,
        rows: DataFrame | Rows | None = None,
        /,
        *args: Any,
        results: str | StructType | None = None,
        resume: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Calls function(data, *args, **kwargs) on each rank.

        Ranks have torchrun's environment: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Their stdout and
        stderr appear on the caller's, with the rank in front. Ctrl-C ends both sides.

        Parameters
        ----------
        function : function, list of functions, or path
            A function that can be pickled, or the path of a Python script on the driver. A script gets its data set
            from spark_supplier.data(), args as words of sys.argv, and kwargs as --name value. Of several functions,
            such as trials or folds, each gets every row, from one pass of Spark: the ranks are dealt to them, and each
            function has RANK, WORLD_SIZE and a process group of its own ranks. They save no checkpoints. With
            launcher="elsewhere" leave it out: run(rows) prints how the ranks connect, and waits until they are done.
        rows : DataFrame or Rows
            What ranks get. A DataFrame alone has the defaults of Rows.
        *args, **kwargs
            Of the function, after the data. For parameters that are called results or resume, use functools.partial.
        results : str or StructType, optional
            The schema of rows that ranks write in `with data.results() as out: out.write(batch)`, for example
            predictions: "id, label, score float not null". A name without a type is a column that ranks get: it comes
            back with its values.
        resume : bool
            The ranks begin from the newest checkpoint in the Supplier's checkpoints=. If there is none, they begin from
            the beginning, and the log says so.

        Returns
        -------
        What rank 0's call returns; with results= a RunResult, which has that and the rows of all ranks. Of several
        functions a list of these.

        Raises
        ------
        RankError
            A rank raised an exception, or its process ended.
        RunTimeoutError
            A limit has passed.
        RunError
            Anything else failed. A wrong argument is also a ValueError.

        Examples
        --------
        >>> from spark_supplier import Rows, Supplier, session
        >>> def predict(data):
        ...     with data.results() as out:
        ...         for batch in data:
        ...             out.write({**batch, "score": batch["id"].double() / 2})
        >>> supplier = Supplier(ranks=1, backend=None)
        >>> with supplier.run(predict, Rows(session().range(3)), results="id, score float") as found:
        ...     found.rows.agg({"score": "sum"}).first()[0]
        1.5
        """
        self._warm.check_open()
        self._statistics = RunStatistics()
        is_elsewhere = isinstance(self.launcher, Elsewhere)
        if is_elsewhere:
            function, rows = None, _rows_alone(function, rows, args, kwargs)
        elif rows is None:
            raise RunConfigError("run() takes a function and its rows: run(function, rows)")
        functions = [] if is_elsewhere else functions_of(function)
        count = max(1, len(functions))
        given = CallRows(rows if isinstance(rows, Rows) else Rows(rows), results, self.backend, count)
        given.check_ranks(self.ranks)
        if is_elsewhere:
            check_rows(given.rows)
        if given.share == "node" and self.min_ranks is not None:
            raise RunConfigError(
                "share='node' and min_ranks: with fewer ranks, other ranks would share a node: leave one of them out"
            )
        session, is_global, batch_size = given.session, given.is_global, given.rows.batch_size
        over = exchange_over(given.shuffle.how, self.launcher, self.backend)
        if len(functions) > 1 and isinstance(self.launcher, Mpirun):
            raise RunConfigError("several functions need launcher='torch': MPI.COMM_WORLD would have the ranks of all")
        for each in functions:
            check_arguments(each, args, kwargs)
        script = Script.read(function) if isinstance(function, (str, os.PathLike)) else None
        job = Job(functions, script, args, kwargs, given.spec(over))
        if is_elsewhere:
            job.data.options.update(ring=self.ring, block=self.block)
        payload = b"" if self.launcher == "here" else pickled(job)
        here = None
        if self.launcher == "here":
            # It loads PyTorch.
            from spark_supplier.driver.here import Here

            here = Here(job, self.environment or {})
        # Several functions are at different places.
        saves = self.checkpoints if isinstance(self.checkpoints, Checkpoints) and len(functions) < 2 else None
        if resume and saves is None:
            raise RunConfigError(
                "resume=True: several functions save no checkpoints"
                if len(functions) > 1
                else "resume=True: this Supplier has no checkpoints: make Supplier(…, checkpoints=…)"
            )
        resumes_from = str(saves.folder) if resume and saves is not None else None
        # Rows that ranks wrote before a checkpoint are lost with these ranks.
        checkpoints = CallCheckpoints(session, None if results is not None else saves, resumes_from, given.share)

        def attempt(checkpoint: Checkpoint | None, restarts: Restarts) -> Any:
            starters = 0 if isinstance(self.launcher, (Mpirun, Elsewhere)) else 1
            fewest = self.ranks if self.min_ranks is None else self.min_ranks
            ranks = wait_for_ranks(
                session, fewest, self.ranks, len(given.kinds), starters, self.start_timeout, given.together
            )
            each = ranks // given.together
            if is_global and batch_size < each:
                raise NotAgain(
                    f"batch_size is {batch_size}, and with order='global' it is that of all {each} ranks together: "
                    "each needs a row of each batch"
                )
            wanted = Wanted(
                session,
                lambda: self._launcher_of(session, ranks, given.together) if here is None else here.launcher(),
                ranks,
                str(self.folder),
                len(given.kinds),
                rank_environment(session, self.environment or {}),
                self.start_timeout,
                given.together,
            )
            of_ranks, partitions = Attempt(), given.spread
            if checkpoint is not None:
                # Its positions are in these partitions, whatever the number of ranks.
                of_ranks, partitions = checkpoint.beginning(ranks, is_global), partitions_of(checkpoint, given.spread)
            of_ranks.restarts, of_ranks.last_failure = restarts.count, restarts.last_failure

            def use(pool: RankPool) -> Any:
                frames = list(given.supplied(ranks, of_ranks.resume_positions, partitions, self.start_timeout))
                ring, block = optional_size("ring", self.ring), optional_size("block", self.block)
                files = pool.files_of_call(
                    given.kinds, ring, block, "node" if is_global and len(given.kinds) == 1 else given.share or 1
                )
                checkpoints.begin(pool.files.name, of_ranks, ranks, checkpoint)
                run = Run(
                    session, pool, files, frames, payload, self.backend, Limits(self.start_timeout, self.stall_timeout),
                    results is not None, of_ranks, checkpoints, self.on_report, count,
                )  # fmt: skip
                try:
                    found = run.result()
                    return found if isinstance(function, (list, tuple)) else found[0]
                finally:
                    self._statistics = run.statistics

            return self._warm.call(wanted, use)

        def drive() -> Any:
            return result_of(session, self.restarts, checkpoints, attempt)

        return drive() if here is None else here.result(session, drive)
