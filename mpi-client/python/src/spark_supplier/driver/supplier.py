"""Supplier: one call that trains on a DataFrame."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spark_supplier.arguments import (
    check_options,
    names_unknown_options,
    one_of,
    optional_size,
    seconds,
    shown,
    whole_number,
)
from spark_supplier.driver import frame_checks, option_checks
from spark_supplier.driver.attempts import Restarts, result_of
from spark_supplier.driver.checkpoints import Checkpoint, Checkpoints, partitions_of
from spark_supplier.driver.failures import NotAgain
from spark_supplier.driver.function_checks import check_arguments, check_function, pickled
from spark_supplier.driver.launcher import make_launcher
from spark_supplier.driver.option_checks import (
    check_checkpoints,
    check_environment,
    check_folder,
    check_min_ranks,
    check_order,
    check_resident,
)
from spark_supplier.driver.placement import wait_for_ranks
from spark_supplier.driver.rank_pool import RankPool
from spark_supplier.driver.results import keys_of
from spark_supplier.driver.run import Limits, Run
from spark_supplier.driver.sessions import Session
from spark_supplier.driver.spark_jobs import Supplied
from spark_supplier.driver.statistics import RunStatistics
from spark_supplier.driver.warm_ranks import Wanted, WarmRanks
from spark_supplier.errors import RunError
from spark_supplier.node.environment import OMP_NUM_THREADS
from spark_supplier.node.job import NO_LIMIT_SECONDS, DataSpec, Job, Script
from spark_supplier.node.messages import Attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

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


def resume_positions(states: Sequence[Mapping[str, Any]]) -> str:
    """The option resume-positions of df.write.format("supply"), from the state_dict() of every rank."""
    if not isinstance(states, Sequence) or not all(isinstance(state, Mapping) for state in states):
        raise RunError(f"resume is {states!r:.200}: it must be a list of the data.state_dict() of each rank")
    earlier = {state.get("resume_positions") for state in states}
    if len(earlier) != 1 or not all("position" in state for state in states):
        raise RunError(
            "resume must be the data.state_dict() of each rank of one run: these are none, or of several runs"
        )
    if any(":exchange:" in (state["position"] or "") for state in states):
        raise RunError(
            "resume: these states are of the middle of an epoch with shuffle='all', where the rows of a rank are with "
            "other ranks, too: pass states that were saved at the end of an epoch"
        )
    positions = ",".join(state["position"] or "no-position" for state in states)
    return "/".join(filter(None, [*earlier, positions]))


# Small blocks reach a rank early.
_BATCHES_IN_BLOCK = 4


class Supplier:
    """Starts ranks where Spark's executors are, and supplies DataFrames to them.

    ranks: number of ranks on all nodes together. Spark needs a task slot for each (two with validation), and with
        launcher="torch" one on each node to start its ranks.
    min_ranks: if Spark has too few slots, also after start_timeout seconds, a call starts with as many ranks as fit,
        but at least these. None: only with all.
    max_restarts: how often a call starts its ranks again when one of them, an executor or a node fails. They begin from
        the newest checkpoint of the call (checkpoint_folder), or without one from the beginning.
    launcher: "torch": Spark starts the ranks where its executors are. "mpirun": the driver starts them by mpirun, for
        functions that use MPI: in the allocation of Slurm's job if there is one, else on this machine. MPIRUN of the
        environment is another mpirun or MPICH's mpiexec, with options of your own.
    host_file: of mpirun, in Open MPI's format. Spark needs executors on its hosts.
    ring, block: sizes of a rank's ring and of a block: bytes, or a text as "64MiB". None: four blocks of 2 MiB.
    folder: shared memory of executors and ranks on each node.
    environment: environment variables for the ranks.
    idle_timeout: seconds after which ranks end that wait for a call.

    In a `with` block the ranks' processes stay from call to call, with what they have imported, and with their GPUs:

        with Supplier(ranks=4) as supplier:
            state = supplier.run(train, df)
            score = supplier.run(evaluate, other, kwargs={"state": state})

    The first call starts them. A call that fails, also by Ctrl-C, ends them all, and the next one starts others; so do
    ranks or executors that have gone meanwhile, idle_timeout, and another run of the session that needs their task
    slots. Between calls they hold one slot on each node, and they end with the block, the session and the driver. Calls
    of several threads take turns. A pickled Supplier has no ranks: enter it again.
    """

    def __init__(
        self,
        ranks: int,
        *,
        min_ranks: int | None = None,
        max_restarts: int = 0,
        launcher: str = "torch",
        host_file: str | os.PathLike[str] | None = None,
        ring: int | str | None = None,
        block: int | str | None = None,
        folder: str | os.PathLike[str] = "/dev/shm",
        environment: Mapping[str, str] | None = None,
        idle_timeout: float = 600,
    ) -> None:
        with option_checks.as_run_errors():
            self._ranks = whole_number("ranks", ranks, 1)
            self._min_ranks = check_min_ranks(min_ranks, ranks)
            self._max_restarts = whole_number("max_restarts", max_restarts, 0)
            one_of("launcher", launcher, ("torch", "mpirun"))
            self._ring = optional_size("ring", ring)
            self._block = optional_size("block", block)
            self._folder = check_folder(folder)
            self._environment = check_environment(environment)
            self._warm = WarmRanks(seconds("idle_timeout", idle_timeout))
        self._launcher = launcher
        self._host_file = host_file
        self._statistics: RunStatistics | None = None

    def __enter__(self) -> Supplier:
        if not self._warm.open():
            raise RunError("this Supplier keeps its ranks already: make another one for a `with` block within its own")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the ranks that wait for a call, as leaving the `with` block does. There can be no other call."""
        self._warm.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_warm": self._warm.idle_timeout, "_statistics": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "_warm": WarmRanks(state["_warm"])})

    @property
    def statistics(self) -> RunStatistics | None:
        """How the time of the last call was spent, also of one that has failed, and what its rank 0 reported.

        None: there was no call. After a restart, it is of the last attempt. The logger spark_supplier has its sentence
        at the end of each call (level INFO).
        """
        return self._statistics

    @names_unknown_options(": arguments of the function go in args=(…) and kwargs={…}")
    def run(
        self,
        function: Callable[..., Any] | str | os.PathLike[str],
        df: DataFrame,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        columns: Iterable[str] | None = None,
        batch_size: int = 32,
        epochs: int = 1,
        seed: int = 0,
        shuffle: str = "partitions",
        shuffle_buffer: int | None = None,
        order: str = "ranks",
        exchange_fraction: float | None = None,
        uneven: str | None = None,
        repartition: str | int = "auto",
        lists: str = "auto",
        half: Sequence[str] = (),
        vectors: str = "dense",
        block_elements: int | None = None,
        resident: bool = False,
        resident_folder: str | os.PathLike[str] | None = None,
        resident_quota: str | int | None = None,
        keep: str | None = None,
        validation: DataFrame | None = None,
        resume: Sequence[Mapping[str, Any]] | None = None,
        resume_from: str | os.PathLike[str] | None = None,
        checkpoint_folder: str | os.PathLike[str] | None = None,
        checkpoint_every: float | str | None = None,
        keep_checkpoints: int = 3,
        transform: Callable[[Any], Any] | None = None,
        collate_fn: Callable[[Any], Any] | None = None,
        dtypes: Mapping[str, Any] | None = None,
        ragged: Mapping[str, str] | str | None = None,
        nulls: Mapping[str, Any] | None = None,
        zero_copy: bool = False,
        results: str | StructType | None = None,
        backend: str | None = "auto",
        start_timeout: float = 120,
        stall_timeout: float | None = None,
        on_report: Callable[[dict[str, Any]], object] | None = None,
    ) -> Any:
        """Calls function(data, *args, **kwargs) on each rank. Returns what rank 0's call returns, or a RunResult.

        function: a function that can be pickled, or the path of a Python script on the driver. A script gets its data
            set from spark_supplier.data(), args as words of sys.argv, and kwargs as --name value.
        df: the training data. Only Spark's own shuffles and resident_folder write it to disk, and training starts while
            Spark still computes df.
        columns: the columns of df that ranks get; None: all. "point.x" is a field of the struct "point".
        order: "ranks": each rank has its own order, of its own partitions. "global": there is one order of all rows, a
            function of seed, shuffle and epoch, and batch_size is that of all ranks together: each rank gets a run of
            each batch. So the sequence of batches is the same with any number of ranks, also if a restart has fewer.
            The task of each rank then computes all rows: persist a df that is costly. It must not come from a shuffle.
        batch_size, transform, collate_fn, dtypes, ragged, nulls, zero_copy: as for Dataset.
        epochs, seed, shuffle, shuffle_buffer, exchange_fraction, block_elements, resident, resident_folder,
            resident_quota, keep: as for df.write.format("supply"). With shuffle="all" the ranks exchange elements, over
            torch.distributed or with launcher="mpirun" over mpi4py; the rows of `validation` are not exchanged.
        uneven: the steps of ranks that get different numbers of rows, as for Dataset. None: "pad" if a backend is
            initialized, since collectives need equal steps, else "keep"; with results, too, which have each row once.
            If rows were repeated or left out, the call says at its end how many.
        repartition: "auto": if df has fewer partitions than ranks, or one rank would get more than twice the rows of
            another, as far as Spark knows before it computes the rows, they are repartitioned round-robin (a shuffle),
            with a warning. False: never. A number: always, over that number of partitions. The same for validation.
        lists: "auto": a column of arrays that all have one length in the first rows becomes an array of more
            dimensions, and an array of another length is an error. "varying": every array may have its own length.
        half: names of columns whose floats and doubles ranks get in half precision: float, double, and arrays, structs
            and maps of them.
        vectors: "dense": a vector of Spark ML or MLlib becomes an array of its numbers. "sparse": a struct of its size,
            indices and values, of which ragged={"x": "sparse"} makes sparse tensors.
        validation: a second DataFrame with the same columns. Ranks get it in each epoch, as data.validation.
        resume: the state_dict() of every rank of an earlier run, in the order of the ranks. That run may have had
            another number of ranks. Each element that it did not consume reaches one rank.
        checkpoint_folder: where data.checkpoint(state) saves: a folder of any file system that the driver's Hadoop
            knows, as "hdfs:///checkpoints/train" or "file:///data/checkpoints". It needs repeatable rows
            (docs/ROWS.md).
        checkpoint_every: between two checkpoints, at least: seconds, or a text as "10 min". data.checkpoint(state) does
            nothing before that. None: each call saves.
        keep_checkpoints: how many of the newest checkpoints stay in the folder.
        resume_from: a folder of checkpoints of an earlier call: the ranks begin from its newest one.
        results: the schema of rows that ranks write in `with data.results() as out: out.write(batch)`, for example
            predictions: "id, label, score float not null", or a StructType. A name without a type is a column of df
            that ranks get: it comes back with its values. The call then returns a RunResult, with the DataFrame of all
            rows. Spark reads them in place, on the ranks' nodes.
        backend: torch.distributed is initialized with it before the call. "auto" is gloo, and nccl for tensors on
            GPUs if each rank has one. None: the function initializes it, or does not need it.
        start_timeout: seconds until Spark has the task slots, and until all ranks have started. Neither Spark's work on
            df nor the function count.
        stall_timeout: seconds that a rank may take from one block to the next, and after the last one. Waits for Spark
            do not count. The ranks then print where they are. None: as long as they like.
        on_report: called with each data.report() of rank 0, soon after it, on the thread of this call: with a dict as
            in statistics.history. What it raises ends the ranks, and is raised here. Meanwhile nothing else is noticed.
            It cannot call this Supplier, if that keeps its ranks.

        Ranks have torchrun's environment: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Their stdout and
        stderr appear on the caller's, with the rank in front. Ctrl-C ends both sides.

        Raises RankError if a rank raises or ends, RunTimeoutError if a limit has passed, and RunError if anything else
        fails.
        """
        self._warm.check_open()
        self._statistics = RunStatistics()
        session = frame_checks.check_session(df)
        if results is not None and uneven == "pad":
            raise RunError("uneven='pad' repeats rows, and results would have them twice: leave it out, or set 'drop'")
        default = "keep" if backend is None or results is not None else "pad"
        uneven = default if uneven is None else uneven
        with option_checks.as_run_errors():
            columns = frame_checks.check_columns(df, columns)
            check_options(
                columns, batch_size=batch_size, uneven=uneven, transform=transform, collate_fn=collate_fn,
                dtypes=dtypes, ragged=ragged, nulls=nulls,
            )  # fmt: skip
            check_order(epochs, seed, shuffle, shuffle_buffer, exchange_fraction, block_elements, order)
            check_resident(resident, resident_folder, resident_quota, keep, shuffle, order)
            folder, every, begins_from = check_checkpoints(
                checkpoint_folder, checkpoint_every, keep_checkpoints, resume, resume_from, results, backend
            )
            seconds("start_timeout", start_timeout)
            if stall_timeout is not None:
                seconds("stall_timeout", stall_timeout)
            if on_report is not None and not callable(on_report):
                raise RunError(f"on_report is {shown(on_report)}: it must be a function of one argument")
        frame_checks.check_nulls(df, nulls, ragged, dtypes)
        if validation is not None:
            frame_checks.check_frame(validation, "validation")
            frame_checks.check_columns(validation, columns, "validation")
            frame_checks.check_same_types(df, validation, columns)
            frame_checks.check_nulls(validation, nulls, ragged, dtypes)
        spread = option_checks.repartition_option(repartition)
        option_checks.check_forms(lists, half, vectors, columns)
        over = option_checks.exchange_over(shuffle, self._launcher, backend)
        check_function(function)
        script, call = (
            (None, function)
            if callable(function)
            else (Script.read(function, session.is_connect or not session.is_local), None)
        )
        args, kwargs = check_arguments(call, args, kwargs)
        schema = None if results is None else frame_checks.result_schema(results, df, columns, half, vectors)
        is_global = order == "global"
        if is_global and spread == "auto":
            spread = "false"
        positions = None if resume is None else resume_positions(resume)
        checkpoints = Checkpoints(session, folder, every, keep_checkpoints, begins_from)
        kinds = ("train",) if validation is None else ("train", "validation")
        dataset = {
            "columns": columns, "batch_size": batch_size, "timeout": NO_LIMIT_SECONDS,
            "uneven": uneven,
            "transform": transform, "collate_fn": collate_fn, "dtypes": dtypes, "ragged": ragged, "nulls": nulls,
            "zero_copy": zero_copy,
        }  # fmt: skip
        data = DataSpec("train", dataset, epochs, results=schema, exchange_over=over, is_global=is_global)
        if validation is not None:
            data.validation = DataSpec("validation", {**dataset, "uneven": "keep"}, epochs, is_global=is_global)
        payload = pickled(Job(call, script, args, kwargs, data), function)
        options = {
            "epochs": epochs, "seed": seed, "shuffle": shuffle, "shuffle-buffer": shuffle_buffer,
            "exchange-fraction": exchange_fraction,
            "resident": resident, "resident-folder": resident_folder,
            "resident-quota": optional_size("resident_quota", resident_quota), "keep": keep,
            "lists": lists, "half": ",".join(half) or None, "vectors": vectors,
            "block-elements": block_elements or _BATCHES_IN_BLOCK * batch_size,
            "timeout": start_timeout, "rank-timeout": NO_LIMIT_SECONDS,
        }  # fmt: skip
        # Other data, with a name of its own.
        named = {**options, "keep": keep and f"{keep} (validation)"}
        if over is not None:
            named.update({"shuffle": "partitions", "exchange-fraction": None})
        limits = Limits(start_timeout, stall_timeout)

        def supplied(ranks: int, begins: str | None, partitions: str | int) -> Iterator[Supplied]:
            train = frame_checks.selected(df, columns)
            of_train = {**options, "ranks": ranks, "resume-positions": begins}
            of_train["global-batch"] = batch_size if is_global else None
            yield Supplied(train, "train", of_train, partitions, keys_of(df, schema))
            if validation is not None:
                other = frame_checks.selected(validation, columns)
                yield Supplied(other, "validation", {**named, "ranks": ranks}, spread)

        def attempt(checkpoint: Checkpoint | None, restarts: Restarts) -> Any:
            starters = 1 if self._launcher == "torch" else 0
            ranks = wait_for_ranks(session, self._min_ranks, self._ranks, len(kinds), starters, start_timeout)
            if is_global and batch_size < ranks:
                raise NotAgain(
                    f"batch_size is {batch_size}, and with order='global' it is that of all {ranks} ranks together: "
                    "each needs a row of each batch"
                )
            wanted = Wanted(
                session,
                lambda: make_launcher(self._launcher, ranks, self._host_file),
                ranks,
                self._folder,
                len(kinds),
                rank_environment(session, self._environment),
                start_timeout,
            )
            of_ranks, partitions = Attempt(positions), spread
            if checkpoint is not None:
                # Its positions are in these partitions, whatever the number of ranks.
                of_ranks, partitions = checkpoint.beginning(ranks), partitions_of(checkpoint, spread)
            of_ranks.restarts, of_ranks.last_failure = restarts.count, restarts.last_failure

            def use(pool: RankPool) -> Any:
                frames = list(supplied(ranks, of_ranks.resume_positions, partitions))
                files = pool.files_of_call(kinds, self._ring, self._block)
                checkpoints.begin(pool.files.name, of_ranks, ranks, checkpoint)
                run = Run(
                    session, pool, files, frames, payload, backend, limits, schema is not None, of_ranks, checkpoints,
                    on_report,
                )  # fmt: skip
                try:
                    return run.result()
                finally:
                    self._statistics = run.statistics

            return self._warm.call(wanted, use)

        return result_of(session, self._max_restarts, checkpoints, attempt)
