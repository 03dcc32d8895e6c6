"""What the tests of spark_supplier share: a session, a DataFrame, and a check that nothing is left."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import pytest

from connect_server import connect_server

# When Python collects a stopped session in a thread of gRPC, PySpark 4.1 waits for that thread in it, for ever.
_stopped: list[object] = []
_ENDS_SECONDS = 60
_MARK = "SUPPLY_TEST"
# An argument of mpirun's command, too, and of keepers.
_OF_RUN = {b"spark_supplier.node.rank", b"spark_supplier.node.node", b"spark_supplier.node.mpi_rank"}


def prepare_environment():
    """PySpark of this environment, whatever the environment of the tests says."""
    for name in ("SPARK_HOME", "PYSPARK_PYTHON"):
        os.environ.pop(name, None)
    # Every process of this test inherits it.
    os.environ.setdefault(_MARK, str(os.getpid()))


def over_connect():
    """Whether the sessions of the tests are of Spark Connect: SUPPLY_TEST_SESSION=connect."""
    return os.environ.get("SUPPLY_TEST_SESSION") == "connect"


def only_classic(why):
    """Marks a test that a session of Spark Connect cannot have."""
    return pytest.mark.skipif(over_connect(), reason=f"only of Spark Classic: {why}")


def session_fixture(cores, settings=dict):
    """A fixture: the session of a module's tests, with task slots on this machine. settings: makes more of them."""

    @pytest.fixture(scope="module")
    def spark():
        import spark_supplier
        from pyspark.sql import SparkSession

        if over_connect():
            with connect_server(f"local[{cores}]", spark_supplier.jars(), **settings()) as server:
                session = spark_supplier.session(remote=server.remote)
                _stopped.append(session)
                yield session
                session.stop()
            return
        builder = SparkSession.builder.master(f"local[{cores}]").config("spark.jars", spark_supplier.jars())
        for name, value in settings().items():
            builder = builder.config(name, value)
        session = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()
        yield session
        session.stop()

    return spark


@contextlib.contextmanager
def made_session(master, settings=(), is_of_connect=False):
    """A session of a program beside the tests, with these settings of Spark."""
    import spark_supplier
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false", "spark.log.level": "OFF",
        # Executors live for seconds: an optimizing compiler costs more time than it saves.
        "spark.executor.defaultJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1", **dict(settings),
    }  # fmt: skip
    with contextlib.ExitStack() as ends:
        if is_of_connect:
            server = ends.enter_context(connect_server(master, spark_supplier.jars(), **settings))
            spark = spark_supplier.session(remote=server.remote)
        else:
            spark = spark_supplier.session(SparkSession.builder.master(master).config(map=settings))
        yield spark
        spark.stop()


def call(function, df, *, args=(), kwargs=None, results=None, resume=False, **options):
    """A call of a new Supplier. options: of the Supplier and of Rows, by name; args and kwargs: of the function."""
    import spark_supplier
    from spark_supplier.settings import SupplierOptions

    names = {field.name for field in dataclasses.fields(SupplierOptions)} & options.keys()
    supplier = spark_supplier.Supplier(**{"ranks": 1, **{name: options.pop(name) for name in names}})
    return call_of(supplier, function, df, args=args, kwargs=kwargs, results=results, resume=resume, **options)


@contextlib.contextmanager
def warm_calls():
    """As call(), in a folder for the files of runs. A call with the options of the Supplier before has its ranks."""
    import spark_supplier
    from spark_supplier.settings import SupplierOptions

    names = {field.name for field in dataclasses.fields(SupplierOptions)}
    with shared_memory() as folder, contextlib.ExitStack() as supplier:
        kept: dict[str, Any] = {}

        def called(function, df, **options):
            mine = {"ranks": 1, "folder": folder, **{name: options.pop(name) for name in names & options.keys()}}
            if kept.get("options") != mine:
                supplier.close()
                kept.update(options=mine, supplier=supplier.enter_context(spark_supplier.Supplier(**mine)))
            return call_of(kept["supplier"], function, df, **options)

        called.folder = folder  # type: ignore[attr-defined]
        yield called


def call_of(supplier, function, df, *, args=(), kwargs=None, results=None, resume=False, **options):
    """A call of a Supplier. options: of Rows."""
    import spark_supplier

    given = {} if results is None else {"results": results}
    rows = spark_supplier.Rows(df, **options)
    return supplier.run(function, rows, *args, **given, **({"resume": True} if resume else {}), **(kwargs or {}))


def rows(spark, count, partitions=8):
    """`id`, and a vector of three numbers made of it."""
    return spark.range(0, count, 1, partitions).selectExpr("id", "array(float(id), id / 2.0F, 1.0F) as features")


@contextlib.contextmanager
def shared_memory():
    """A folder for the files of runs. At the end it is empty, and no process is left of the runs since then."""
    others = processes_of_runs()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="supply-test-") as folder:
        yield folder
        end = time.monotonic() + _ENDS_SECONDS
        while (left := {*os.listdir(folder), *processes_of_runs() - others}) and time.monotonic() < end:
            time.sleep(0.1)
        assert left == set()


def printed_by(program, *arguments, seconds=300, typed=None, **environment):
    """What a program beside the tests prints, and what it has printed as errors. typed: its stdin."""
    command = [sys.executable, str(pathlib.Path(__file__).with_name(program)), *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment}, input=typed, timeout=seconds,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.stdout, done.stderr


def found_by(program, *arguments, **options):
    """What it prints last, in JSON. Its first argument is a folder for the files of runs."""
    with shared_memory() as folder:
        printed, _ = printed_by(program, folder, *arguments, **options)
    return json.loads(printed.splitlines()[-1])


def processes_of_tests():
    """The folders in /proc of the processes that these tests have started: other suites run at the same time."""
    mark = f"{_MARK}={os.environ[_MARK]}".encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                yield process


def processes_of_runs():
    """What this test has started on nodes, and mpirun: number and command of each process."""
    found = set()
    for process in processes_of_tests():
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            if _OF_RUN & set(command):
                found.add(f"{process.name} {b' '.join(command).decode()}")
    return found
