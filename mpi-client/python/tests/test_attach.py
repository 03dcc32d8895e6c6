"""MatrixRanks.attach: ranks that a test starts by mpirun, one program after the other, and lost commands."""

import re
import shutil
import threading

import numpy
import pyarrow
import pytest
from spark_supplier import RunError, RunTimeoutError
from spark_supplier.ml import TorchEstimator
from spark_supplier.offload import MatrixRanks, release

from rank_server import RANKS, RankServer, answer_on, skip_without_server
from supplier_session import session_fixture, shared_memory
from task import Task

skip_without_server()
spark = session_fixture(2)
# How long ranks wait for the others.
LATE_SECONDS = 3


@pytest.fixture
def server(libraries):
    """Not started yet."""
    with shared_memory() as folder:
        made = RankServer(folder, RANKS, libraries)
        yield made
        made.end()
        for file in (made.mapped_files, made.named_pipes):
            file.unlink()
        # A rank that mpirun has killed leaves its socket.
        shutil.rmtree(made.folder / "pairs", ignore_errors=True)


@pytest.fixture
def running(server):
    server.start()
    server.wait()
    return server


def attach(spark, server, **options):
    from spark_supplier.offload import MatrixRanks

    options = {"library": "libroutines.so", "folder": server.folder, "timeout": 60, **options}
    return MatrixRanks.attach(spark, **{**server.files(), **options})


def numbers(spark):
    return spark.range(0, 40, 1, 4).selectExpr("id", "array(double(id), 1.0D) as features")


def use(spark, ranks):
    """Sends a matrix, calls a routine, and brings the result back."""
    from spark_supplier.offload import release

    copied = ranks.call("copy", ranks.matrix(numbers(spark), features="features", key="id"))
    df = copied.to_df()
    assert sorted(tuple(row["row"]) for row in df.where("key = row[0]").collect()) == [(i, 1) for i in range(40)]
    release(df)
    return copied


def test_one_program_after_the_other(spark, running):
    with attach(spark, running) as first:
        left = use(spark, first)
    with pytest.raises(RunError, match="all matrices are gone: these ranks are closed"):
        left.to_numpy()
    with attach(spark, running) as second:
        assert (use(spark, second).to_numpy()[:, 1] == numpy.ones(40)).all()
        second.close(end_ranks=True)
    assert running.finish() == 0


def test_ranks_that_come_late_are_found_in_the_environment(spark, server, monkeypatch):
    for name, value in {**server.environment, "SUPPLY_RANKS": str(RANKS)}.items():
        monkeypatch.setenv(name, value)
    threading.Timer(2, server.start).start()
    with MatrixRanks.attach(spark, library="libroutines.so", folder=server.folder) as ranks:
        use(spark, ranks)


def test_a_program_does_not_get_the_ranks_of_another(spark, running):
    with attach(spark, running) as first:
        matrix = use(spark, first)
        with pytest.raises(RunError, match=r"the ranks hold matrices for the program '[a-z-]+' \(local-.*"):
            attach(spark, running)
        assert matrix.to_numpy().shape == (40, 2)
        with attach(spark, running, take_over=True) as second:
            with pytest.raises(RunError, match="the program '[a-z-]+' .* has taken the ranks over; all"):
                matrix.to_numpy()
            use(spark, second)


def test_another_number_of_ranks_is_refused(spark, running):
    with pytest.raises(RunError, match="says that it is rank 0 of 2, not 0 of 1"):
        attach(spark, running, ranks=1)
    with attach(spark, running) as ranks:
        use(spark, ranks)


def test_ranks_that_nobody_has_started(spark, server):
    with pytest.raises(RunTimeoutError, match="has no supply-server at .*or was never started with these config files"):
        attach(spark, server, timeout=1)


def test_files_that_nobody_has_named(spark, monkeypatch):
    for name in ("SUPPLY_RANKS", "SUPPLY_HOSTS", "SUPPLY_MAPPED_FILES", "SUPPLY_NAMED_PIPES"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RunError, match="set ranks= or SUPPLY_RANKS"):
        MatrixRanks.attach(spark)
    with pytest.raises(RunError, match="set named_pipes= or SUPPLY_NAMED_PIPES"):
        MatrixRanks.attach(spark, 1, mapped_files="mapped-files.conf")
    with pytest.raises(RunError, match="cannot read the host file no-hosts"):
        MatrixRanks.attach(spark, host_file="no-hosts")


@pytest.mark.parametrize("wrong, text", [
    ({"ranks": "two"}, "ranks is 'two' .*: it must be a whole number, 1 or more"), ({"ranks": None}, "ranks is None"),
    ({"timeout": "5"}, "timeout is '5' .*: it must be a number of seconds above 0"), ({"timeout": -1}, "timeout is -1"),
    ({"folder": "a b"}, "folder is 'a b': it must be an absolute path"),
    ({"spark": "local"}, "'local' .* is no SparkSession"),
])  # fmt: skip
def test_wrong_arguments(spark, wrong, text):
    arguments = {"spark": spark, "ranks": 1, **wrong}
    # Without a number, attach() asks its environment.
    for make in (MatrixRanks,) if arguments["ranks"] is None else (MatrixRanks, MatrixRanks.attach):
        with pytest.raises(RunError, match=text):
            make(**arguments)


def test_what_is_no_data_frame(spark):
    for refuse in (release, TorchEstimator(model=len, loss=len).fit):
        with pytest.raises(RunError, match="must be a DataFrame of Spark, and is of type str: read the file first"):
            refuse("rows.parquet")


def assert_error(answer, pattern):
    assert re.search(pattern, answer["error"]), answer


@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_command_that_reaches_one_rank_only_is_begun_by_none(spark, server, rank):
    server.start(LATE_SECONDS)
    server.wait()
    answer = answer_on(server.send(rank, "attach", "one", program="stranger"))
    missing = f"the command did not reach rank {1 - rank} on node .* within {LATE_SECONDS} s, so no rank has begun it"
    assert_error(answer, missing)
    # The other rank gets it when nobody waits any more.
    assert_error(answer_on(server.send(1 - rank, "attach", "one", program="stranger")), missing)
    with attach(spark, server) as ranks:
        assert ranks.call("large", columns=4).to_numpy().tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("rank", range(RANKS))
def test_a_program_that_leaves_one_rank_is_not_waited_for(spark, running, rank):
    running.send(rank, "attach", "one", program="stranger").close()
    with attach(spark, running) as ranks:
        use(spark, ranks)


def test_two_programs_that_send_at_once(running):
    first = running.send(0, "attach", "one", program="first")
    assert_error(answer_on(running.send(1, "attach", "two", program="second")), "another program has sent a command")
    on_other_rank = running.send(1, "attach", "one", program="first")
    assert [answer_on(connection)["done"]["rank"] for connection in (first, on_other_rank)] == [0, 1]


STRANGER = {"program": "stranger"}


def test_commands_that_no_program_sends(running):
    assert_error(answer_on(running.send(0, "status", "")), "a command has a name and an id")
    assert_error(answer_on(running.send(0, "fetch", "one", handle=1)), "attach to them again")
    running.send_to_all("attach", "two", **STRANGER)
    for handle, columns in ((1, 1 << 20), (2, 4)):
        large = {"library": "libroutines.so", "routine": "large", "parameters": {"columns": columns}}
        answers = running.send_to_all("call", f"call {handle}", handle=handle, **large, **STRANGER)
        assert all("done" in answer for answer in answers), answers

    def fetched(handle):
        """The id of a command that was answered gets the same answer."""
        with running.send(0, "fetch", "three", handle=handle, **STRANGER) as connection:
            return connection.makefile("rb").read()

    assert len(fetched(1)) > 8 << 20
    assert fetched(2) == fetched(1)


@pytest.mark.long
def test_rows_that_do_not_come_as_the_command_says(server):
    server.start(10)
    server.wait()
    server.send_to_all("attach", "one", **STRANGER)
    # Sparse rows are announced, and one rank gets a dense one.
    server.send_to_all("receive", "two", handle=1, columns=4, **STRANGER)
    task = Task(*server.pair(0))
    task.supply(pyarrow.record_batch([pyarrow.array([bytes(8)], pyarrow.binary())], names=["row"]))
    # Otherwise it would be a race which rank waits for longer: the other one for rows, or this one for the other.
    other = Task(*server.pair(1))
    other.end_of_data()
    other.confirm_end()
    for answer in server.send_to_all("received", "three", handle=1, **STRANGER):
        assert_error(answer, "a dense matrix has a column 'row', and a sparse one has")
    task.leave()
    other.leave()
    # One rank forgets that rows have come: the other must not wait for it.
    server.send_to_all("receive", "four", handle=2, columns=4, **STRANGER)
    answer_on(server.send(1, "drop", "five", handle=1, **STRANGER))
    for answer in server.send_to_all("received", "six", handle=2, **STRANGER):
        assert_error(answer, "within 10 s|timeout")
