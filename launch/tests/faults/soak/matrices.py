"""Matrices of Spark on resident ranks (supply-server), which are killed or suspended during calls."""

import contextlib
import threading

from rank_server import NUMBERS, SERVER, compile_routines
from soak.ground import RANKS, TIMEOUT, Skipped

# Longer than mpirun takes to start ranks.
_SHORT_TIMEOUT = 15
GONE = "all matrices of these ranks are gone"


def server_killed(ground):
    with _started(ground, TIMEOUT) as (ranks, matrix):
        _use(ground, ranks, matrix)
        killer = threading.Timer(ground.chance.uniform(0, 1), _kill_a_server, [ground])
        killer.start()
        text = _failure(lambda: ranks.call("wait"))
        killer.join()
        assert GONE in text, text
        text = _failure(matrix.to_numpy)
        assert "are gone" in text or "all matrices" in text, text


def server_suspended(ground):
    with _started(ground, _SHORT_TIMEOUT) as (ranks, matrix):
        with ground.suspended(ground.chance.choice(ground.processes.running(SERVER))):
            text = _failure(lambda: ranks.call("column_sums", matrix, library="libcolumn_sums.so"))
        # It was stopped in a command, or had not the next one yet.
        assert f"has not answered for {_SHORT_TIMEOUT}" in text or "the command did not reach rank" in text, text


def _use(ground, ranks, matrix):
    """A routine's result is right, and every row comes back once, also if an executor dies meanwhile."""
    from spark_supplier.offload import release

    sums = ranks.call("column_sums", matrix, library="libcolumn_sums.so").to_numpy().tolist()
    assert sums == [NUMBERS * (NUMBERS - 1) / 2, NUMBERS, sum(i * i for i in range(NUMBERS))], sums
    df = matrix.to_df()
    ground.kill(ground.chance.choice(sorted(ground.cluster.executors())))
    keys = [row["key"] for row in df.collect()]
    release(df)
    ground.tally.elements += len(keys)
    ground.tally.lost += len(set(range(NUMBERS)) - set(keys))
    ground.tally.duplicated += len(keys) - len(set(keys))


@contextlib.contextmanager
def _started(ground, timeout):
    if not SERVER.exists():
        raise Skipped("libsupply was built without MPI")
    from spark_supplier.offload import MatrixRanks

    libraries = compile_routines(ground.folder)
    numbers = ground.cluster.session.range(0, NUMBERS, 1, 5).selectExpr("id", "array(double(id), 1, id * id) as x")
    ranks = MatrixRanks(
        ground.cluster.session, RANKS, library="libroutines.so", libraries=libraries, server=SERVER,
        folder=ground.memory, timeout=timeout,
    )  # fmt: skip
    try:
        yield ranks, ranks.matrix(numbers, features="x", key="id")
    finally:
        with contextlib.suppress(Exception):
            # The first error counts. A server that cannot be ended is found as a process that is left.
            ranks.close()


def _kill_a_server(ground):
    ground.kill(ground.chance.choice(ground.processes.running(SERVER)))


def _failure(call):
    """The message of a call that must fail."""
    from spark_supplier import RunError

    try:
        call()
    except RunError as error:
        return str(error)
    raise AssertionError("a call to ranks that are gone has succeeded")
