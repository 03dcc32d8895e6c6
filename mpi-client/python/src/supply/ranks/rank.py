"""A rank: `python -m supply.ranks.rank` gets a function from the driver, runs it on its data, and sends its result.

Processes that it starts get functions of the program by value.
"""

from __future__ import annotations

import _thread
import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from multiprocessing.reduction import ForkingPickler
from types import FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

from supply.errors import SparkError, SupplyError, SupplyTimeoutError
from supply.ranks import exceptions
from supply.ranks.exceptions import in_words_of_run
from supply.ranks.hub import KEY, Driver, connect
from supply.ranks.job import Job, set_current_data
from supply.ranks.messages import Failure, RankReady, RankStarted, Result, Stop, Work
from supply.ranks.process_group import end_process_group, hold_port, init_process_group
from supply.shared_memory import fix
from supply_launch.signals import end_with_parent

if TYPE_CHECKING:
    from supply.ranks.rank_data import RankData


def pickle_program_by_value() -> None:
    """With spawn and forkserver, multiprocessing pickles functions and classes by their name in a module.

    Those of the driver's program and of notebooks have none here, so children get them as ranks do: by value.
    """
    ForkingPickler.reducer_override = _reduced  # type: ignore[method-assign,assignment]


def _reduced(_: ForkingPickler, value: Any) -> Any:
    if not isinstance(value, (FunctionType, type)) or _has_name(value):
        return NotImplemented
    from pyspark import cloudpickle

    return cloudpickle.loads, (cloudpickle.dumps(value),)


def _has_name(value: Any) -> bool:
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


_PROGRESS_SECONDS = 0.5
# A sleeping main thread notices only afterwards that it is to stop.
_STOP_POLL_SECONDS = 0.05
_TRANSPORTS = ("supply.torch_transport", "supply.mpi")


class Stopped(BaseException):
    """The driver or the node process wants this rank to return."""


def main() -> int:
    end_with_parent(int(os.environ.pop("SUPPLY_PARENT")), signal.SIGKILL)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    driver = connect()
    # Programs that the function starts, and tools that record the environment, must not get it.
    del os.environ[KEY]
    pickle_program_by_value()
    rank, host = int(os.environ["RANK"]), os.environ["SUPPLY_HOST"]
    for stream in (sys.stdout, sys.stderr):
        # The driver takes the lines for UTF-8.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    driver.send(RankStarted(rank, host, hold_port() if rank == 0 else 0))
    _import_pytorch()
    work = driver.receive()
    if not isinstance(work, Work):
        return 1
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = work.master[0], str(work.master[1])
    signal.signal(signal.SIGTERM, _raise_stopped)
    threading.Thread(target=_follow, args=(driver,), daemon=True).start()
    try:
        status = _run(driver, rank, host, work)
        # Nothing is left to stop, and Python would print the exception at its end.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except Stopped:
        return 1
    return status


def _import_pytorch() -> None:
    """PyTorch takes seconds to load. Meanwhile the other ranks start."""
    # A rank without it fails where it needs it.
    with contextlib.suppress(ImportError):
        import supply.ranks.rank_data  # noqa: F401


def _run(driver: Driver, rank: int, host: str, work: Work) -> int:
    data: RankData | None = None
    try:
        from pyspark import cloudpickle

        from supply.ranks.rank_data import RankData

        init_process_group(work.backend)
        driver.send(RankReady(rank))
        # This may import modules of the user.
        job: Job = cloudpickle.loads(work.payload)
        data = RankData(job.data)
        # Spark's tasks wait for it, and the function may take long until it asks for its first batch.
        data._open_all()
        set_current_data(data)
        threading.Thread(target=_report, args=(driver, rank, data), daemon=True).start()
        returned = job.run(data)
        # The driver takes no other rank's.
        result = cloudpickle.dumps(returned) if rank == 0 else b""
        data._seal_results()
        end_process_group()
        _send_progress(driver, rank, data)
    except BaseException as error:
        _send_progress(driver, rank, data)
        driver.send(_failure(rank, host, error))
        if data is not None:
            data.abort(f"rank {rank}: {type(error).__name__}: {exceptions.text_of(error)}")
        return 1
    driver.send(Result(rank, data._is_at_end, result))
    try:
        data._drain()
        data.close()
    except Stopped:
        data.abort("every rank has returned")
        # Nothing stops this rank again.
        return 0
    except SupplyError:
        # If Spark has failed meanwhile, the driver knows why.
        data.abort("this rank has returned")
    if job.data.results is not None:
        _wait_for_stop()
    return 0


def _send_progress(driver: Driver, rank: int, data: RankData | None) -> None:
    """The last progress. The bar of a run shorter than the pauses of _report would stay at its beginning."""
    with contextlib.suppress(SupplyError):
        if data is not None and (progress := data._progress(rank)) is not None:
            driver.send(progress)


def _wait_for_stop() -> None:
    """Waits until the driver has read where the results are. The run's files are removed when the ranks exit."""
    with contextlib.suppress(Stopped):
        while True:
            time.sleep(_STOP_POLL_SECONDS)


def _failure(rank: int, host: str, error: BaseException) -> Failure:
    if isinstance(error, SupplyError):
        error.args = (in_words_of_run(str(error)),)
    text = "".join(traceback.format_exception(type(error), error, _of_caller(error.__traceback__)))
    text += _remedy(host, error)
    # Also if the function has raised an exception of its own from it.
    of_spark = any(isinstance(raised, (SparkError, SupplyTimeoutError, Stopped)) for raised in exceptions.chain(error))
    return Failure(rank, host, text, of_spark, exceptions.is_of_collective(error), exceptions.pickled(error))


def _remedy(host: str, error: BaseException) -> str:
    """What to do about an error of Python or PyTorch that says too little to a user of Supplier.run."""
    if isinstance(error, ModuleNotFoundError):
        return (
            f"{host} has no module '{error.name}': pass a module of the program with spark.sparkContext.addPyFile, and "
            "install others on every node\n"
        )
    if "shared memory" in str(error):
        return f"{fix(host)}\n"
    return ""


def _of_caller(frames: TracebackType | None) -> TracebackType | None:
    """Without the frames of this package, which say nothing to the caller."""
    while frames is not None and frames.tb_frame.f_globals.get("__package__") == __package__:
        frames = frames.tb_next
    return frames


def _follow(driver: Driver) -> None:
    """Ends the main thread's work when the driver says so, or is gone."""
    message = driver.receive()
    if isinstance(message, Stop) and message.dump:
        faulthandler.dump_traceback()
    if message is None or isinstance(message, Stop):
        _thread.interrupt_main(signal.SIGTERM)


def _raise_stopped(number: int, frame: FrameType | None) -> None:
    if _is_called_back(frame):
        # An exception would be lost there.
        threading.Timer(_STOP_POLL_SECONDS, _thread.interrupt_main, [number]).start()
        return
    signal.signal(number, signal.SIG_IGN)
    raise Stopped("the run has ended")


def _is_called_back(frame: FrameType | None) -> bool:
    """Whether the extension module has called this code."""
    while frame is not None:
        if frame.f_globals.get("__name__") in _TRANSPORTS:
            return True
        frame = frame.f_back
    return False


def _report(driver: Driver, rank: int, data: RankData) -> None:
    reported = None
    # The pair may be closed meanwhile.
    with contextlib.suppress(SupplyError):
        while True:
            time.sleep(_PROGRESS_SECONDS)
            if (progress := data._progress(rank)) != reported and progress is not None:
                driver.send(progress)
                reported = progress


if __name__ == "__main__":
    sys.exit(main())
