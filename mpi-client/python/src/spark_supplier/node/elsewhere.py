"""connect(): a program that something else has started becomes a rank of a run whose Spark is on other nodes."""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import platform
import threading
import time
import weakref
from functools import partial
from types import TracebackType
from typing import Any

from spark_supplier.arguments import BATCH_CHECKS, refuse_unknown, seconds
from spark_supplier.errors import ConfigError, SparkError, SupplyError, SupplyTimeoutError
from spark_supplier.node import hub
from spark_supplier.node.checkpoints import RankCheckpoints
from spark_supplier.node.job import DataSpec, Job
from spark_supplier.node.messages import Failure, Leave, NotTaken, RankConnected, RankIdle, RankReady, Result, Work
from spark_supplier.node.rank import failure_of
from spark_supplier.node.rank_data import RankData, Reporter

_RETRY_SECONDS = 0.5
_ENDED = "the driver has ended the run: its output says why"
_SCHEMES = {"supply": "", "supplys": "/tls"}


class Address:
    """Where a run is, and its key: "supply://HOST:PORT/RUN", with TLS "supplys://"."""

    def __init__(self, text: str | None, key: str | None) -> None:
        text, key = text or os.environ.get("SUPPLY_CONNECT"), key or os.environ.get("SUPPLY_KEY")
        if not text:
            raise ConfigError("connect() has no address: give it, or set SUPPLY_CONNECT, as Spark's side prints it")
        if not key:
            raise ConfigError(f"connect({text!r}) has no key: give it, or set SUPPLY_KEY, as Spark's side prints it")
        self.text, self.key = text, key
        scheme, _, rest = text.partition("://")
        place, _, run = rest.partition("/")
        host, _, port = place.rpartition(":")
        if scheme not in _SCHEMES or not host or not port.isdigit() or not run or "/" in run:
            raise ConfigError(
                f"'{text}' is no address of a run: it is supply://HOST:PORT/RUN, as Spark's side prints it"
            )
        self.environment = {
            hub.ADDRESS: f"{host.strip('[]')}:{port}{_SCHEMES[scheme]}",
            hub.RUN: run,
            hub.KEY: hashlib.sha256(key.encode()).hexdigest(),
        }

    def opening(self, kind: str) -> dict[str, Any]:
        """The options of open() for data of that kind."""
        return {"connect": f"{self.text}/{kind}", "key": self.key}


def _meet(address: Address, timeout: float) -> hub.Driver:
    """A connection to the driver, which may start later."""
    end = time.monotonic() + timeout
    while True:
        try:
            return hub.Driver(hub.peer(address.environment))
        except OSError as error:
            if time.monotonic() > end:
                raise SupplyTimeoutError(
                    f"cannot reach the run at {address.text} for {timeout:g} s ({error}): does Spark's side run, and "
                    "with this key? (timeout)"
                ) from error
        time.sleep(_RETRY_SECONDS)


def _number(name: str) -> int:
    value = os.environ.get(name, "")
    if not value.isdigit():
        raise ConfigError(
            f"connect() takes RANK and WORLD_SIZE from the environment, and {name} is {value!r}: start the program "
            "with torchrun, or set both"
        )
    return int(value)


class ConnectedData(RankData):
    """What connect() returns: the same as `data` in a function of Supplier.run. Close it at the end of the program.

    Attributes
    ----------
    As of RankData.
    """

    def __init__(self, spec: DataSpec, address: Address, checkpoints: RankCheckpoints, driver: hub.Driver) -> None:
        super().__init__(spec, address, checkpoints)
        self._driver = driver
        self._all_left = threading.Event()
        # Whether the driver has ended the run, or its connection.
        self._is_lost = False
        # What has left the `with` block.
        self._raised: BaseException | None = None
        self._open_all()
        if spec.results is not None:
            # Spark's task keeps the results, and must not leave before.
            for dataset in self._datasets():
                dataset._opened()._pair.hold_end()
        self._reporter = Reporter(self, checkpoints.rank, driver.send)
        self._reporter.start()
        self._following = threading.Thread(target=self._follow, daemon=True)
        self._following.start()
        driver.send(RankReady(checkpoints.rank))

    def _follow(self) -> None:
        """The driver ends the run: whoever waits for rows learns it."""
        while isinstance(self._driver.receive(), Leave):
            self._all_left.set()
        self._is_lost = True
        for dataset in self._datasets():
            if dataset._supply is not None:
                dataset._supply._pair.fail(_ENDED)

    def close(self) -> None:
        """Tells Spark's side that this rank is done, and waits until Spark knows that it has everything.

        Before the end of the data it receives the rest, so that Spark can supply the other ranks to their end, until
        all ranks are done. Rows that the rank has written are sealed. A second call does nothing.

        Raises
        ------
        SparkError
            Spark's run has failed.
        """
        if self._is_closed:
            return
        rank, steps = self._checkpoints.rank, self._steps
        try:
            self._seal_results()
            self._end_report()
            self._driver.send(Result(rank, self._is_at_end, pickle.dumps(None), steps.repeated, steps.left_out))
            self._drain(lambda: self._all_left.is_set() or self._is_lost)
            if self._is_lost:
                raise SparkError(_ENDED)
            super().close()
            self._driver.send(RankIdle(rank))
        except SupplyError as error:
            self._end_report()
            super().abort("this rank has returned")
            self._driver.send(RankIdle(rank) if self._all_left.is_set() else self._failure(error))
            if not self._all_left.is_set():
                raise
        finally:
            self._disconnect()

    def abort(self, reason: str) -> None:
        """Ends Spark's run, with this reason."""
        if self._is_closed:
            return
        self._end_report()
        self._driver.send(self._failure(self._raised or SupplyError(reason)))
        super().abort(reason)
        self._disconnect()

    def _failure(self, error: BaseException) -> Failure:
        return failure_of(self._checkpoints.rank, platform.node(), error)

    def _end_report(self) -> None:
        self._reporter.stop()
        self._reporter.join()
        self._reporter.report()

    def _disconnect(self) -> None:
        self._driver.end()
        self._following.join()
        self._driver.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._raised = error
        super().__exit__(kind, error, traceback)


def _close_at_exit(of: weakref.ref[ConnectedData], process: int) -> None:
    """A program may end without close(), when it has read everything. Not a child that it has forked."""
    data = of()
    if os.getpid() == process and data is not None and not data._is_closed and data._is_at_end:
        data.close()


def connect(address: str | None = None, key: str | None = None, *, timeout: float = 120, **options: Any) -> RankData:
    """Makes this process a rank of a call of Supplier(launcher="elsewhere").run, whose Spark is on other nodes.

    The process gets its rows over a connection, into memory of its own: no Spark, no Java and no shared folder is
    needed here. RANK and WORLD_SIZE are those of the environment, as torchrun sets them. With uneven="pad" or "drop",
    and with shuffle="all", initialize torch.distributed first.

    Parameters
    ----------
    address : str, optional
        "supply://HOST:PORT/RUN", as Spark's side prints it. Default: SUPPLY_CONNECT.
    key : str, optional
        As Spark's side prints it, or was given. Default: SUPPLY_KEY.
    timeout : float, default 120
        Seconds until the run must be there.
    **options
        Of the batches, in place of those of Rows: batch_size, transform, collate_fn, dtypes, ragged, nulls, uneven,
        zero_copy. Functions are best given here.

    Returns
    -------
    RankData
        The same as `data` of a function of Supplier.run. Use it in a `with` block, or close it at the end.

    Raises
    ------
    ConfigError
        The address, an option or the environment is wrong.
    SupplyTimeoutError
        The run is not there.
    SupplyError
        Spark's side does not take this rank, and the text says why.

    Examples
    --------
    ::

        with spark_supplier.connect() as data:
            for epoch in data.epochs():
                for batch in epoch:
                    train(batch["features"], batch["label"])
    """
    refuse_unknown("connect", options, tuple(BATCH_CHECKS))
    for name, value in options.items():
        BATCH_CHECKS[name](name, value)
    where = Address(address, key)
    rank, ranks = _number("RANK"), _number("WORLD_SIZE")
    driver = _meet(where, seconds("timeout", timeout))
    try:
        driver.send(RankConnected(rank, platform.node(), 0, ranks))
        work = driver.receive()
        if isinstance(work, NotTaken):
            raise SupplyError(work.text)
        if not isinstance(work, Work):
            raise SupplyError(
                f"the run at {where.text} has ended before rank {rank} got its work: see the driver's output"
            )
        job: Job = pickle.loads(work.payload)
        job.data.options.update(options)
        checkpoints = RankCheckpoints(work.attempt, rank, partial(hub.connect_file, where.environment), driver.send)
        data = ConnectedData(job.data, where, checkpoints, driver)
    except BaseException:
        driver.close()
        raise
    atexit.register(_close_at_exit, weakref.ref(data), os.getpid())
    return data
