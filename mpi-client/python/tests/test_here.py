"""launcher="here": the rank is the caller's thread, for a debugger."""

import os
import signal
import sys
import threading
import traceback

import pytest
from pyspark.sql.functions import expr, udf
from spark_supplier import Checkpoints, Mpirun, Rows, Supplier
from spark_supplier.driver.sessions import ClassicSession
from spark_supplier.errors import RankError, RunConfigError, RunError

from supplier_session import only_classic, printed_by, session_fixture

pytestmark = only_classic("launcher='here' is refused over Spark Connect")
spark = session_fixture(2)


@pytest.fixture
def supplier(memory):
    return Supplier(1, launcher="here", folder=memory)


@pytest.mark.slow
def test_a_breakpoint_stops_in_the_program(memory):
    commands = "p sorted(batch)\np batch['id'].tolist()\nu\nc\n"
    printed, _ = printed_by("here_program.py", memory, typed=commands)
    assert "(Pdb) ['id']\n(Pdb) [4, 5, 6, 7]\n" in printed
    assert "total 45, in this process: True, in its main thread: True, batches: [4, 4, 2]" in printed


def test_executors_of_their_own_are_refused(spark, supplier, monkeypatch):
    monkeypatch.setattr(ClassicSession, "is_local", property(lambda _: False))
    with pytest.raises(RunError, match=r"launcher='here' needs Spark in local mode, with master local\[\*\]"):
        supplier.run(place, spark.range(3))


def test_nothing_is_pickled(spark, supplier):
    lock = threading.Lock()
    assert supplier.run(lambda data, given: given is lock, spark.range(3), lock) is True


def place(data):
    return os.getpid(), threading.get_ident(), {name: os.environ[name] for name in ("RANK", "WORLD_SIZE")}


def test_the_function_is_in_this_thread(spark, supplier):
    before = dict(os.environ), list(sys.argv), list(sys.path)
    assert supplier.run(place, spark.range(3)) == (
        os.getpid(), threading.get_ident(), {"RANK": "0", "WORLD_SIZE": "1"},
    )  # fmt: skip
    assert (dict(os.environ), sys.argv, sys.path) == before, "the program's own is back"


def test_epochs_validation_reports_and_calls_one_after_another(spark, memory):
    reports: list[dict[str, float]] = []

    def train(data, factor):
        seen = []
        for epoch in data.epochs():
            ids = [row for batch in epoch for row in batch["id"].tolist()]
            held_out = [row for batch in data.validation for row in batch["id"].tolist()]
            seen.append((epoch.number, sorted(ids), sorted(held_out)))
            data.report(rows=len(ids) * factor)
        return seen

    with Supplier(1, launcher="here", folder=memory, on_report=reports.append) as supplier:
        rows = Rows(spark.range(10), batch_size=3, epochs=2, validation=spark.range(20, 23))
        expected = [(number, list(range(10)), [20, 21, 22]) for number in range(2)]
        assert supplier.run(train, rows, factor=2) == expected
        assert [report["rows"] for report in reports] == [20, 20]
        assert supplier.statistics is not None
        assert supplier.statistics.ranks[0]["rows"] == 10 and len(supplier.statistics.history) == 2
        assert supplier.run(train, rows, 3) == expected


def test_rest_of_the_data_is_not_awaited(spark, supplier):
    def first(data):
        return next(iter(data))["id"].tolist()

    assert supplier.run(first, Rows(spark.range(0, 1000, 1, 1), batch_size=5, epochs=50, shuffle="none")) == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert supplier.run(lambda data: "no rows", spark.range(100)) == "no rows"


def test_results(spark, supplier):
    def predict(data):
        with data.results() as out:
            for number, batch in enumerate(data):
                out.write({**batch, "score": batch["id"] * 2.0})
                if number == 3:
                    break
        return "done"

    with supplier.run(predict, Rows(spark.range(1000), batch_size=5), results="id, score float") as found:
        assert found.value == "done"
        assert [(row["id"] * 2.0) == row["score"] for row in found.rows.collect()] == [True] * 20


def test_checkpoints(spark, memory, tmp_path):
    def train(data, stop=None):
        step = data.saved or 0
        seen = []
        for batch in data:
            seen += batch["id"].tolist()
            step += 1
            assert data.save(step)
            if step == stop:
                break
        return step, seen

    supplier = Supplier(1, launcher="here", folder=memory, checkpoints=Checkpoints(tmp_path / "checkpoints", keep=2))
    rows = Rows(spark.range(0, 20, 1, 2), batch_size=4, seed=3)
    step, seen = supplier.run(train, rows, stop=2)
    again, rest = supplier.run(train, rows, resume=True)
    assert (step, again) == (2, 5) and sorted(seen + rest) == list(range(20))


def test_a_backend_only_if_it_is_given(spark, memory):
    def group(data):
        from torch import distributed

        return distributed.is_initialized() and distributed.get_backend()

    from torch import distributed

    for backend, found in (("auto", False), (None, False), ("gloo", "gloo")):
        assert Supplier(1, launcher="here", folder=memory, backend=backend).run(group, spark.range(3)) == found
        assert not distributed.is_initialized()


def test_an_exception_has_its_frames(spark, supplier):
    def fail(data):
        wanted = next(iter(data))["id"]
        raise KeyError(f"of {len(wanted)} rows")

    with pytest.raises(RankError, match="of 3 rows") as raised:
        supplier.run(fail, spark.range(3))
    cause = raised.value.__cause__
    assert isinstance(cause, KeyError)
    frames = [frame for frame, _ in traceback.walk_tb(cause.__traceback__) if frame.f_code.co_name == "fail"]
    assert frames[0].f_locals["wanted"].sort()[0].tolist() == [0, 1, 2]
    assert supplier.run(place, spark.range(3))[0] == os.getpid(), "the next call"


def test_a_failure_of_spark(spark, supplier):
    df = spark.range(0, 1000, 1, 1).select(
        expr("if(id > 900, raise_error('the source is gone'), id) as id").cast("long")
    )

    def count(data):
        return sum(len(batch["id"]) for batch in data)

    with pytest.raises(RunError, match="the source is gone"):
        supplier.run(count, Rows(df, batch_size=10))
    assert supplier.run(count, Rows(spark.range(7), batch_size=2)) == 7


@pytest.mark.parametrize("when", ["in the function", "while it waits for Spark"])
def test_ctrl_c(spark, supplier, when):
    @udf("long")
    def slow(number):
        import time

        time.sleep(600)
        return number

    def interrupted(data):
        if when == "in the function":
            next(iter(data))
            os.kill(os.getpid(), signal.SIGINT)
        else:
            threading.Timer(3, os.kill, [os.getpid(), signal.SIGINT]).start()
            next(iter(data))
        raise AssertionError("not interrupted")

    df = spark.range(3) if when == "in the function" else spark.range(3).select(slow("id").alias("id"))
    with pytest.raises(KeyboardInterrupt):
        supplier.run(interrupted, df)
    assert supplier.run(place, spark.range(3))[0] == os.getpid()


@pytest.mark.parametrize(("options", "says"), [
    ({"ranks": 2}, r"ranks is 2, .*one rank: use Supplier\(1, launcher='here'\)"),
    ({"restarts": 1}, "restarts is 1, .*cannot start again"), ({"stall_timeout": 5}, "stall_timeout is set"),
    ({"min_ranks": 2}, "min_ranks is 2"), ({"launcher": "her"}, "'here'"),
    ({"checkpoints": Checkpoints("/tmp/x", every=5)}, "needs a backend"),
])  # fmt: skip
def test_what_is_refused(options, says):
    with pytest.raises(RunConfigError, match=says):
        Supplier(**{"ranks": 1, "launcher": "here", **options})
    assert Supplier(1, launcher=Mpirun()).backend == "auto"


def test_a_script_is_run_here(spark, supplier, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, spark_supplier\n"
        "data = spark_supplier.data()\n"
        "open(sys.argv[2], 'w').write(f'{os.getpid()} {sum(len(b[\"id\"]) for b in data)}')\n"
    )
    supplier.run(script, spark.range(7), to=str(tmp_path / "found"))
    assert (tmp_path / "found").read_text() == f"{os.getpid()} 7"
