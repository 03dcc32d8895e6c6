"""Supplier: one call that trains on a DataFrame."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from supply.arguments import check_options, names_unknown_options, one_of, optional_size, seconds, whole_number
from supply.errors import RunError
from supply.ranks.environment import OMP_NUM_THREADS
from supply.ranks.job import DataSpec, Job, Script
from supply.spark import checks
from supply.spark.checks import check_environment, check_folder, check_order, check_resident
from supply.spark.function_checks import check_arguments, check_function, pickled
from supply.spark.launcher import make_launcher
from supply.spark.rank_pool import RankPool
from supply.spark.results import keys_of
from supply.spark.run import Limits, Run
from supply.spark.sessions import Session
from supply.spark.spark_jobs import Supplied
from supply.spark.warm_ranks import Wanted, WarmRanks

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
# Within a pair, where the kernel reports deaths, and Run finds stuck ranks. (gloo has milliseconds of 32 bits.)
_NO_LIMIT_SECONDS = 10 * 24 * 3600


class Supplier:
    """Starts ranks where Spark's executors are, and supplies DataFrames to them.

    ranks: number of ranks on all nodes together. Spark needs a task slot for each (two with validation), and with
        launcher="torch" one on each node to start its ranks.
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
        launcher: str = "torch",
        host_file: str | os.PathLike[str] | None = None,
        ring: int | str | None = None,
        block: int | str | None = None,
        folder: str | os.PathLike[str] = "/dev/shm",
        environment: Mapping[str, str] | None = None,
        idle_timeout: float = 600,
    ) -> None:
        with checks.as_run_errors():
            self._ranks = whole_number("ranks", ranks, 1)
            one_of("launcher", launcher, ("torch", "mpirun"))
            self._ring = optional_size("ring", ring)
            self._block = optional_size("block", block)
            self._folder = check_folder(folder)
            self._environment = check_environment(environment)
            self._warm = WarmRanks(seconds("idle_timeout", idle_timeout))
        self._launcher = launcher
        self._host_file = host_file

    def __enter__(self) -> Supplier:
        if not self._warm.open():
            raise RunError("this Supplier keeps its ranks already: make another one for a `with` block within its own")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the ranks that wait for a call, as leaving the `with` block does."""
        self._warm.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_warm": self._warm.idle_timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "_warm": WarmRanks(state["_warm"])})

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
    ) -> Any:
        """Calls function(data, *args, **kwargs) on each rank. Returns what rank 0's call returns, or a RunResult.

        function: a function that can be pickled, or the path of a Python script on the driver. A script gets its data
            set from supply.spark.data(), args as words of sys.argv, and kwargs as --name value.
        df: the training data. Nothing is written to disk without resident_folder, and training starts while Spark
            still computes df.
        columns: the columns of df that ranks get; None: all. "point.x" is a field of the struct "point".
        batch_size, transform, collate_fn, dtypes, ragged, nulls, zero_copy: as for SupplyDataset.
        epochs, seed, shuffle, shuffle_buffer, exchange_fraction, block_elements, resident, resident_folder,
            resident_quota, keep: as for df.write.format("supply"). With shuffle="all" the ranks exchange elements, over
            torch.distributed or with launcher="mpirun" over mpi4py; the rows of `validation` are not exchanged.
        uneven: the steps of ranks that get different numbers of rows, as for SupplyDataset. None: "pad" if a backend is
            initialized, since collectives need equal steps, else "keep".
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
        results: the schema of rows that ranks write in `with data.results() as out: out.write(batch)`, for example
            predictions: "id, label, score float not null", or a StructType. A name without a type is a column of df
            that ranks get: it comes back with its values. The call then returns a RunResult, with the DataFrame of all
            rows. Spark reads them in place, on the ranks' nodes.
        backend: torch.distributed is initialized with it before the call. "auto" is nccl with CUDA, else gloo. None:
            the function initializes it, or does not need it.
        start_timeout: seconds until Spark has the task slots, and until all ranks have started. Neither Spark's work on
            df nor the function count.
        stall_timeout: seconds that a rank may take from one block to the next, and after the last one. Waits for Spark
            do not count. The ranks then print where they are. None: as long as they like.

        Ranks have torchrun's environment: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Their stdout and
        stderr appear on the caller's, with the rank in front. Ctrl-C ends both sides.

        Raises RankError if a rank raises or ends, RunTimeoutError if a limit has passed, and RunError if anything else
        fails.
        """
        session = checks.check_session(df)
        uneven = ("keep" if backend is None else "pad") if uneven is None else uneven
        with checks.as_run_errors():
            columns = checks.check_columns(df, columns)
            check_options(
                columns, batch_size=batch_size, uneven=uneven, transform=transform, collate_fn=collate_fn,
                dtypes=dtypes, ragged=ragged, nulls=nulls,
            )  # fmt: skip
            check_order(epochs, seed, shuffle, shuffle_buffer, exchange_fraction, block_elements)
            check_resident(resident, resident_folder, resident_quota, keep, shuffle)
            seconds("start_timeout", start_timeout)
            if stall_timeout is not None:
                seconds("stall_timeout", stall_timeout)
        checks.check_nulls(df, nulls, ragged, dtypes)
        if validation is not None:
            checks.check_frame(validation, "validation")
            checks.check_columns(validation, columns, "validation")
            checks.check_same_types(df, validation, columns)
            checks.check_nulls(validation, nulls, ragged, dtypes)
        spread = checks.repartition_option(repartition)
        checks.check_forms(lists, half, vectors, columns)
        over = checks.exchange_over(shuffle, self._launcher, backend)
        check_function(function)
        script, call = (
            (None, function)
            if callable(function)
            else (Script.read(function, session.is_connect or not session.is_local), None)
        )
        args, kwargs = check_arguments(call, args, kwargs)
        schema = None if results is None else checks.result_schema(results, df, columns, half)
        positions = None if resume is None else resume_positions(resume)
        kinds = ("train",) if validation is None else ("train", "validation")
        dataset = {
            "columns": columns, "batch_size": batch_size, "timeout": _NO_LIMIT_SECONDS,
            "uneven": uneven,
            "transform": transform, "collate_fn": collate_fn, "dtypes": dtypes, "ragged": ragged, "nulls": nulls,
            "zero_copy": zero_copy,
        }  # fmt: skip
        data = DataSpec("train", dataset, epochs, positions, results=schema, exchange_over=over)
        if validation is not None:
            data.validation = DataSpec("validation", {**dataset, "uneven": "keep"}, epochs)
        payload = pickled(Job(call, script, args, kwargs, data), function)
        options = {
            "ranks": self._ranks, "epochs": epochs, "seed": seed, "shuffle": shuffle, "shuffle-buffer": shuffle_buffer,
            "exchange-fraction": exchange_fraction,
            "resident": resident, "resident-folder": resident_folder,
            "resident-quota": optional_size("resident_quota", resident_quota), "keep": keep,
            "lists": lists, "half": ",".join(half) or None, "vectors": vectors,
            "block-elements": block_elements or _BATCHES_IN_BLOCK * batch_size,
            "timeout": start_timeout, "rank-timeout": _NO_LIMIT_SECONDS,
        }  # fmt: skip
        resumed = {**options, "resume-positions": positions}
        supplied = [
            Supplied(
                df.select(*(checks.selected(df, column) for column in columns)),
                "train",
                resumed,
                spread,
                keys_of(df, schema),
            )
        ]
        if validation is not None:
            # Other data, with a name of its own.
            named = {**options, "keep": keep and f"{keep} (validation)"}
            if over is not None:
                named.update({"shuffle": "partitions", "exchange-fraction": None})
            supplied.append(
                Supplied(
                    validation.select(*(checks.selected(validation, column) for column in columns)),
                    "validation",
                    named,
                    spread,
                )
            )
        wanted = Wanted(
            session,
            lambda: make_launcher(self._launcher, self._ranks, self._host_file),
            self._ranks,
            self._folder,
            len(kinds),
            rank_environment(session, self._environment),
            start_timeout,
        )

        def use(pool: RankPool) -> Any:
            files = pool.files_of_call(kinds, self._ring, self._block)
            limits = Limits(start_timeout, stall_timeout)
            return Run(session, pool, files, supplied, payload, backend, limits, schema is not None).result()

        return self._warm.call(wanted, use)
