"""A rank: `python -m spark_supplier.node.rank` gets functions from the driver, one after the other,
runs each on its data, and sends the result.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import faulthandler
import gc
import io
import multiprocessing
import os
import queue
import signal
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from spark_supplier.errors import SparkError, SupplyError, SupplyTimeoutError
from spark_supplier.launch.signals import end_with_parent
from spark_supplier.limits import is_of_thread_limit, more_space, more_threads
from spark_supplier.node import exceptions
from spark_supplier.node.exceptions import in_words_of_run
from spark_supplier.node.hub import ADDRESS, KEY, RUN, Connection, Driver, connect, connect_file
from spark_supplier.node.job import Job, set_current_data
from spark_supplier.node.messages import Begin, Failure, Leave, RankIdle, RankReady, RankStarted, Result, Stop, Work
from spark_supplier.node.process_group import end_process_group, hold_port, init_process_group
from spark_supplier.node.process_state import ProcessState, dump_on_signal, flush_output, free_memory
from spark_supplier.node.program import forget_program, share_program

if TYPE_CHECKING:
    from spark_supplier.node.rank_data import RankData, Reporter


# How long threads and processes of the function may take to end.
_NAMED_SECONDS = 1
# A sleeping main thread notices only afterwards that it is to stop.
_STOP_POLL_SECONDS = 0.05
_TRANSPORTS = ("spark_supplier.torch_transport", "spark_supplier.mpi")


# Interrupts a rank that still receives the rest of its data.
_LEAVE = signal.SIGUSR2


class Stopped(BaseException):
    """The driver or the node process wants this rank to return."""


class Left(BaseException):
    """All ranks have returned."""


class Rank:
    """This process, from call to call."""

    def __init__(self, driver: Driver, connect_file: Callable[[], Connection]) -> None:
        self._driver = driver
        self._connect_file = connect_file
        self._rank, self._host = int(os.environ["RANK"]), os.environ["SUPPLY_HOST"]
        # What the driver has sent. None: it has asked this process to end, or is gone.
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Whether a signal to end raises in the main thread.
        self._calls = False
        # All ranks have returned from this call.
        self._all_left = threading.Event()
        self._import_error: Exception | None = None
        # What the last call has raised.
        self.raised: BaseException | None = None

    def serve(self) -> int:
        """Calls function after function, until the driver ends this process. Returns its exit status."""
        self._send_started()
        # What modules make stays. Collections would only look at it, here and after each call.
        gc.disable()
        self._import_error = _import_modules()
        gc.freeze()
        gc.enable()
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(_LEAVE, lambda *_: None)
        os.register_at_fork(after_in_child=self._become_child)
        state = ProcessState()
        threading.Thread(target=self._follow, daemon=True).start()
        while (message := self._inbox.get()) is not None:
            if isinstance(message, Begin):
                self._send_started()
                continue
            try:
                self._calls = True
                returned = self._call(message)
                self._calls = False
            except Stopped:
                returned = False
            if not returned:
                # Nothing is left to stop, and Python would print the exception at its end.
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                return 1
            state.restore()
            forget_program()
            flush_output()
            self._driver.send(RankIdle(self._rank))
            free_memory()
        return 0

    def _send_started(self) -> None:
        self._driver.send(RankStarted(self._rank, self._host, hold_port()))

    def _call(self, work: Work) -> bool:
        """False: this process must end."""
        functions = len(work.masters)
        number = self._rank % functions
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = map(str, work.masters[number])
        os.environ["SUPPLY_RESULTS_FOLDER"] = str(work.files.results_folder)
        # Modules of the driver's program, if this node has them. The program may have added folders meanwhile.
        sys.path += [entry for entry in work.path if entry not in sys.path and os.path.exists(entry)]
        self._all_left.clear()
        data: RankData | None = None
        reporter: Reporter | None = None
        try:
            if self._import_error is not None:
                # A module that was imported in part fails otherwise the second time.
                raise self._import_error
            from spark_supplier.node.checkpoints import RankCheckpoints
            from spark_supplier.node.rank_data import RankData, Reporter

            init_process_group(work.backend, functions)
            self._driver.send(RankReady(self._rank))
            job = self._job_of(work)
            checkpoints = RankCheckpoints(work.attempt, self._rank, self._connect_file, self._driver.send)
            data = RankData(job.data, work.files, checkpoints)
            reporter = Reporter(data, self._rank, self._driver.send)
            # Spark's tasks wait for it, and the function may take long until it asks for its first batch.
            data._open_all()
            set_current_data(data)
            reporter.start()
            _check_mpi()
            if functions > 1:
                _be_rank_of_one(functions)
            value = job.run(data, number)
            # The function may have imported it.
            _check_mpi()
            # The driver takes no other rank's.
            result = _pickled_result(value) if self._rank < functions else b""
            data._seal_results()
            self._end_group()
            reporter.report()
        except BaseException as error:
            self.raised = error
            set_current_data(None)
            if reporter is not None:
                reporter.stop()
                reporter.report()
            self._driver.send(failure_of(self._rank, self._host, error))
            if data is not None:
                data.abort(f"rank {self._rank}: {type(error).__name__}: {exceptions.text_of(error)}")
            return False
        steps = data._steps
        self._driver.send(Result(self._rank, data._is_at_end, result, steps.repeated, steps.left_out))
        self._leave(data)
        set_current_data(None)
        reporter.stop()
        reporter.join()
        return True

    def _job_of(self, work: Work) -> Job:
        """This may import modules of the user."""
        from pyspark import cloudpickle

        _refuse_spark()
        job: Job = cloudpickle.loads(work.payload)
        for function in job.functions:
            share_program(function)
        return job

    def _end_group(self) -> None:
        end_process_group()

    def _leave(self, data: RankData) -> None:
        """Receives the rest of the data, so that Spark can supply the other ranks to their end."""
        signal.signal(_LEAVE, _raise_left)
        try:
            if self._all_left.is_set():
                raise Left
            data._drain()
            data.close()
        except (Left, Stopped) as end:
            data.abort("every rank has returned")
            if isinstance(end, Stopped):
                raise
        except SupplyError:
            # If Spark has failed meanwhile, the driver knows why.
            data.abort("this rank has returned")
        finally:
            # It may come now.
            with contextlib.suppress(Left):
                signal.signal(_LEAVE, lambda *_: None)
            signal.signal(_LEAVE, lambda *_: None)

    def _follow(self) -> None:
        """Takes what the driver sends. What ends the main thread's work interrupts it."""
        while (message := self._driver.receive()) is not None and not isinstance(message, Stop):
            if isinstance(message, Leave):
                self._all_left.set()
                _thread.interrupt_main(_LEAVE)
            else:
                self._inbox.put(message)
        if isinstance(message, Stop) and message.dump:
            faulthandler.dump_traceback()
        # It may wait for a call, or be in one.
        self._inbox.put(None)
        _thread.interrupt_main(signal.SIGTERM)

    def _become_child(self) -> None:
        """Processes that the function forks end by SIGTERM, as those of a multiprocessing.Pool."""
        if signal.getsignal(signal.SIGTERM) == self._end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """The handler of SIGTERM."""
        if not self._calls:
            self._inbox.put(None)
        elif _is_called_back(frame):
            # An exception would be lost there.
            threading.Timer(_STOP_POLL_SECONDS, _thread.interrupt_main, [number]).start()
        else:
            signal.signal(number, signal.SIG_IGN)
            raise Stopped("the run has ended")


def _be_rank_of_one(functions: int) -> None:
    """From here on the environment counts the ranks of this rank's function."""
    # LOCAL_RANK stays: it is the number of a GPU.
    for name in ("RANK", "WORLD_SIZE"):
        os.environ[name] = str(int(os.environ[name]) // functions)


def _pickled_result(value: Any) -> bytes:
    from pyspark import cloudpickle

    from spark_supplier.node.checkpoints import compact

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, obj: Any) -> Any:
            own = compact(obj)
            return super().reducer_override(obj) if own is obj else own.__reduce_ex__(2)

    content = io.BytesIO()
    try:
        Pickler(content).dump(value)
    except Exception as error:
        raise SupplyError(
            f"the function has returned a value of type {type(value).__name__} that cannot be pickled ({error}): "
            "return what can travel to the caller, such as numbers, texts, tensors, or the state_dict() of a model"
        ) from error
    return content.getvalue()


def _name_left_running() -> None:
    """Python waits at its end for these threads and processes."""
    threads = [each.name for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    if left := threads + [each.name for each in multiprocessing.active_children() if not each.daemon]:
        print(
            f"the run waits for threads or processes that the function has left running ({', '.join(left)}), and then "
            "kills them: join them in the function, or start them with daemon=True",
            file=sys.stderr,
        )


def main() -> int:
    end_with_parent(int(os.environ.pop("SUPPLY_PARENT")), signal.SIGKILL)
    dump_on_signal()
    driver = connect()
    environment = {name: os.environ[name] for name in (ADDRESS, RUN, KEY)}
    # Programs that the function starts, and tools that record the environment, must not get it.
    del os.environ[KEY]
    for stream in (sys.stdout, sys.stderr):
        # The driver takes the lines for UTF-8.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    status = Rank(driver, partial(connect_file, environment)).serve()
    # At its end, Python ends pools that have no work.
    timer = threading.Timer(_NAMED_SECONDS, _name_left_running)
    timer.daemon = True
    timer.start()
    return status


def _import_modules() -> Exception | None:
    """PyTorch takes seconds to load. Meanwhile the other ranks start. Returns what a call fails with."""
    try:
        import pyspark.cloudpickle  # noqa: F401

        import spark_supplier.node.rank_data  # noqa: F401
    except Exception as error:
        return error
    return None


def _check_mpi() -> None:
    """A program with the library of another MPI than mpirun's is alone, and its sums are wrong."""
    mpi = sys.modules.get("mpi4py.MPI")
    if (
        mpi is None
        or "spark_supplier.node.mpi_node" not in sys.modules
        or not mpi.Is_initialized()
        or mpi.Is_finalized()
    ):
        return
    rank, ranks = os.environ["RANK"], os.environ["WORLD_SIZE"]
    if (str(mpi.COMM_WORLD.rank), str(mpi.COMM_WORLD.size)) != (rank, ranks):
        raise SupplyError(
            f"mpirun has started rank {rank} of {ranks}, and mpi4py is rank {mpi.COMM_WORLD.rank} of "
            f"{mpi.COMM_WORLD.size}: MPIRUN must name the mpirun of mpi4py's MPI library "
            f"({mpi.Get_library_version().splitlines()[0]})"
        )


def _refuse_spark() -> None:
    """SparkSession.builder.getOrCreate() would start another Spark in the rank."""
    from pyspark import SparkContext

    def refuse() -> None:
        raise SupplyError(
            "a rank has no Spark, which runs in the driver: make DataFrames there, and give the rank rows as df or "
            "validation, and values in args or kwargs"
        )

    SparkContext._assert_on_driver = staticmethod(refuse)


def failure_of(rank: int, host: str, error: BaseException) -> Failure:
    """What the driver is told of an exception."""
    if isinstance(error, SupplyError):
        error.args = (in_words_of_run(str(error)),)
    text = "".join(traceback.format_exception(type(error), error, _of_caller(error.__traceback__)))
    text += _remedy(host, error)
    # Also if the function has raised an exception of its own from it.
    of_spark = any(isinstance(raised, (SparkError, SupplyTimeoutError, Stopped)) for raised in exceptions.chain(error))
    return Failure(rank, host, text, of_spark, exceptions.is_of_collective(error), exceptions.pickled(error))


def _remedy(host: str, error: BaseException) -> str:
    """What to do about an error of Python or PyTorch that says too little to a user of Supplier.run."""
    if isinstance(error, ImportError) and (hiding := _hiding_modules(error)):
        return f"{', '.join(hiding)} on {host} hides a module of Python: rename it, or take its folder off the path\n"
    if isinstance(error, ModuleNotFoundError):
        return (
            f"{host} has no module '{error.name}': pass a module of the program with spark.sparkContext.addPyFile "
            "(over Spark Connect spark.addArtifacts(path, pyfile=True)), and install others on every node\n"
        )
    if "default process group twice" in str(error):
        return "Supplier.run has initialized torch.distributed: leave this call out, or set backend=None\n"
    if "shared memory" in str(error):
        return f"{more_space(host)}\n"
    if is_of_thread_limit(error):
        return f"{more_threads(host)}\n"
    if isinstance(error, OSError) and (error.errno == errno.EROFS or "No usable temporary directory" in str(error)):
        return (
            f"{host} has no folder there that can be written: name another one (for temporary files TMPDIR, in "
            "Supplier(environment=...)), or mount a volume there, on Kubernetes an emptyDir\n"
        )
    return ""


def _hiding_modules(error: ImportError) -> list[str]:
    """Files of others with names of modules of Python, as http.py beside the program. One that failed is a frame."""
    modules = [frame.f_globals for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules += [vars(module) for name, module in sys.modules.items() if name in sys.stdlib_module_names]
    files = {each.get("__file__") for each in modules if each.get("__name__") in sys.stdlib_module_names}
    folders = tuple(os.path.join(sysconfig.get_path(kind), "") for kind in ("stdlib", "platstdlib"))
    return sorted(file for file in files if file is not None and not file.startswith(folders))


def _of_caller(frames: TracebackType | None) -> TracebackType | None:
    """Without the frames of this package, which say nothing to the caller."""
    while frames is not None and frames.tb_frame.f_globals.get("__package__") == __package__:
        frames = frames.tb_next
    return frames


def _raise_left(*_: Any) -> None:
    raise Left


def _is_called_back(frame: FrameType | None) -> bool:
    """Whether the extension module has called this code."""
    while frame is not None:
        if frame.f_globals.get("__name__") in _TRANSPORTS:
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    sys.exit(main())
