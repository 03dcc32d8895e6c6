"""Supplier(launcher="elsewhere"): ranks that something else starts get over connections what Spark itself collects."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest
from spark_supplier import Elsewhere, RankError, Rows, RunError, RunTimeoutError, Supplier

from layout import ROOT
from supplier_session import session_fixture
from task import wait_until

PROGRAM = pathlib.Path(__file__).with_name("connected_rank.py")
RANKS, ROWS = 2, 5000
LIMIT_SECONDS = 240

spark = session_fixture(2 * RANKS + 1)


class Ranks:
    """Starts the program on ranks: start() is for Elsewhere. Of each rank: its processes, and what it has written.

    last: a rank that comes when another process has ended, so that the run is not over before.
    """

    def __init__(self, folder, what, ranks=range(RANKS), of=RANKS, last=None):
        self.folder, self.what, self.ranks, self.of, self.last = folder, what, ranks, of, last
        self.processes, self.printed, self.given = [], [], []

    def start(self, variables):
        self.given.append(variables)
        self._start(variables, self.ranks)
        if self.last is not None:
            threading.Thread(target=self._start_last, args=(variables,), daemon=True).start()

    def _start_last(self, variables):
        wait_until("the end of a process", lambda: any(process.poll() is not None for process in self.processes))
        self._start(variables, [self.last])

    def _start(self, variables, ranks):
        for rank in ranks:
            environment = {**os.environ, **variables, "RANK": f"{rank}", "WORLD_SIZE": f"{self.of}"}
            command = [sys.executable, PROGRAM, self.what, self.folder]
            self.printed.append(self.folder / f"stderr-{len(self.printed)}")
            with self.printed[-1].open("w") as stderr:
                self.processes.append(subprocess.Popen(command, env=environment, stderr=stderr))

    def had(self, rank):
        return json.loads((self.folder / f"{rank}").read_text())

    def errors(self):
        """Their statuses, and what they have printed."""
        statuses = [process.wait(timeout=LIMIT_SECONDS) for process in self.processes]
        return [(status, printed.read_text()) for status, printed in zip(statuses, self.printed)]


class Serve:
    """Supplies rows to ranks that run a part of the program."""

    def __init__(self, folder, ends):
        self._folder, self._ends = folder, ends
        self.ranks: Ranks | None = None
        self.supplier: Supplier | None = None

    def __call__(self, rows, what, *, ranks=RANKS, start=None, of=None, last=None, results=None, **options):
        self.ranks = started = Ranks(self._folder, what, range(ranks) if start is None else start, of or ranks, last)
        self._ends.callback(lambda: [print(printed.read_text()) for printed in started.printed])
        self._ends.callback(lambda: [process.kill() for process in started.processes])
        launcher = Elsewhere(f"test-{what.replace('_', '-')}", start=started.start)
        self.supplier = Supplier(ranks, launcher=launcher, **options)
        return self.supplier.run(rows, results=results)


@pytest.fixture
def serve(tmp_path):
    with contextlib.ExitStack() as ends:
        yield Serve(tmp_path, ends)


def frame(spark, rows=ROWS, partitions=7):
    return spark.range(0, rows, 1, partitions).selectExpr("id", "cast(id as string) as text")


def test_each_row_reaches_one_rank_in_each_epoch(serve, spark, capfd):
    serve(Rows(frame(spark), columns=["id"], epochs=3, batch_size=64, uneven="keep"), "read")
    assert [status for status, _ in serve.ranks.errors()] == [0] * RANKS
    had = [serve.ranks.had(rank)[0] for rank in range(RANKS)]
    for epoch in range(3):
        assert sorted(number for rank in had for number in rank["epochs"][epoch]) == list(range(ROWS))
    assert sum(rank["rows"] for rank in had) == 3 * ROWS
    assert {row["rank"] for row in serve.supplier.statistics.ranks} == set(range(RANKS))
    said = capfd.readouterr().err
    assert f"{RANKS} ranks connect by SUPPLY_CONNECT=supply://" in said
    assert "/test-read SUPPLY_KEY=" in said


def test_more_ranks_than_cores_wait_for_a_slot_and_one_may_be_alone(serve, spark):
    with pytest.raises(RunError, match="too few"):
        serve(Rows(frame(spark), columns=["id"]), "read", ranks=50, start_timeout=5)
    serve(Rows(frame(spark), columns=["id"]), "read_without_close", ranks=1)
    assert serve.ranks.errors()[0][0] == 0
    assert sorted(serve.ranks.had(0)[0]["epochs"][0]) == list(range(ROWS))


def test_validation_and_a_rank_that_returns_early(serve, spark):
    rows = Rows(frame(spark), columns=["id"], validation=frame(spark, 100), uneven="keep", epochs=2)
    serve(rows, "read_both")
    had = [serve.ranks.had(rank)[0]["validation"] for rank in range(RANKS)]
    for epoch in range(2):
        assert sorted(number for rank in had for number in rank[epoch]) == list(range(100))
    serve(Rows(frame(spark, 200000), columns=["id"], epochs=50, uneven="keep"), "read_one_batch")
    assert [status for status, _ in serve.ranks.errors()] == [0] * RANKS


def test_what_ranks_write_is_a_dataframe(serve, spark):
    with serve(Rows(frame(spark), columns=["id"]), "predict", results="id, score double") as found:
        rows = found.rows.orderBy("id").collect()
        assert [(row.id, row.score) for row in rows] == [(number, number / 2) for number in range(ROWS)]
        assert found.rows.selectExpr("sum(score)").first()[0] == sum(range(ROWS)) / 2
    assert [status for status, _ in serve.ranks.errors()] == [0] * RANKS


def test_ranks_that_come_again_begin_at_their_checkpoint(serve, spark, tmp_path):
    rows = Rows(frame(spark), columns=["id"], epochs=3, uneven="keep")
    serve(rows, "save", restarts=1, checkpoints=tmp_path / "states")
    # What a job starts again by itself has the first ones.
    assert serve.ranks.given[0] == serve.ranks.given[1]
    for rank in range(RANKS):
        had = serve.ranks.had(rank)
        assert [each["saved"] for each in had if "saved" in each] == [None, 1]
    had = [each for rank in range(RANKS) for each in serve.ranks.had(rank) if "ids" in each]
    for attempt, epoch in ((0, 0), (1, 1), (1, 2)):
        ids = [number for each in had if (each["attempt"], each["epoch"]) == (attempt, epoch) for number in each["ids"]]
        assert sorted(ids) == list(range(ROWS)), (attempt, epoch)


def test_ranks_exchange_rows_over_their_own_group(serve, spark):
    serve(Rows(frame(spark), columns=["id"], shuffle="all", uneven="keep"), "exchange")
    assert [status for status, _ in serve.ranks.errors()] == [0] * RANKS
    had = [serve.ranks.had(rank)[0]["epochs"][0] for rank in range(RANKS)]
    assert sorted(had[0] + had[1]) == list(range(ROWS))


def test_what_fails_is_named_on_both_sides(serve, spark):
    rows = Rows(frame(spark), columns=["id"], uneven="keep")
    with pytest.raises(RankError, match="the loss of rank [01] is nan") as raised:
        serve(rows, "fail", start=[0, 1])
    assert isinstance(raised.value.__cause__, ValueError)
    assert all(status != 0 for status, _ in serve.ranks.errors())
    with pytest.raises(RankError, match="rank [01] on .* has left before it had all its data"):
        serve(rows, "end")
    with pytest.raises(RunTimeoutError, match="rank 1 has not started within 3 s"):
        serve(rows, "read", start=[0], start_timeout=3)
    status, text = serve.ranks.errors()[0]
    assert status != 0
    assert "has ended before rank 0 got its work" in text


def test_a_rank_that_comes_twice_or_is_of_another_job_is_told(serve, spark):
    rows = Rows(frame(spark), columns=["id"], uneven="keep")
    serve(rows, "read", start=[0, 0], last=1)
    errors = serve.ranks.errors()
    assert sorted(status for status, _ in errors) == [0, 0, 1]
    assert "rank 0 is connected already, from" in next(text for status, text in errors if status)
    with pytest.raises(RunTimeoutError, match="ranks 0, 1 have not started"):
        serve(rows, "read", start=[0, 1], of=4, start_timeout=5)
    assert "this program is rank 0 of 4, and Spark's side waits for 2 ranks: " in serve.ranks.errors()[0][1]


def test_a_wrong_address_or_key_is_named(spark, tmp_path):
    def connect(**variables):
        environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1", **variables}
        command = [sys.executable, PROGRAM, "read", tmp_path]
        return subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS).stderr

    assert "set SUPPLY_CONNECT" in connect()
    assert "set SUPPLY_KEY" in connect(SUPPLY_CONNECT="supply://localhost:1/run")
    assert "is no address of a run" in connect(SUPPLY_CONNECT="localhost:1/run", SUPPLY_KEY="k" * 16)


def test_options_that_ranks_elsewhere_cannot_have_are_refused(spark):
    rows = frame(spark)
    supplier = Supplier(RANKS, launcher="elsewhere")
    for options, word in (({"share": 2}, "share"), ({"order": "global"}, "order"), ({"cache": "memory"}, "persist df")):
        with pytest.raises(RunError, match=word):
            supplier.run(Rows(rows, columns=["id"], **options))
    with pytest.raises(RunError, match="spark_supplier.connect"):
        supplier.run(print, rows)
    with pytest.raises(ValueError, match="run is 'a b'"):
        Elsewhere("a b")
    with pytest.raises(ValueError, match="key must be"):
        Elsewhere(key="short")
    assert "sixteen" not in repr(Elsewhere(key="sixteen characters"))


def test_the_examples_of_the_page(spark, tmp_path):
    text = (ROOT / "docs" / "FEEDERS.md").read_text()
    of_driver, of_ranks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    of_driver = of_driver.replace("ranks=8", "ranks=1").replace('"train"', '"train", start=start')
    started = []

    def start(variables):
        environment = {**os.environ, **variables, "RANK": "0", "WORLD_SIZE": "1"}
        command = [sys.executable, "-c", of_ranks]
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))

    df = spark.range(256).selectExpr("array(float(id), 1f) as features", "id as label")
    exec(of_driver, {"df": df, "start": start})
    printed = started[0].communicate(timeout=LIMIT_SECONDS)[0]
    assert started[0].returncode == 0
    assert printed == 40 * "torch.Size([64])\n"
