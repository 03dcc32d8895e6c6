"""Supplier.run starts its ranks again from their newest checkpoint, and each row of an epoch still comes once."""

import collections
import contextlib
import logging
import os
import pathlib
import re
import signal
import threading

import pytest
from spark_supplier import Checkpoints, Rows, Supplier
from spark_supplier.errors import RankError, RunError

from supplier_session import call, found_by, only_classic, processes_of_runs, rows, session_fixture

ROWS, EPOCHS, BATCH = 192, 2, 16
ONCE = collections.Counter({(epoch, row): 1 for epoch in range(EPOCHS) for row in range(ROWS)})
KINDS = ("rank", "node process", "in a save", "after a save")
spark = session_fixture(5)


_MIB = 1 << 20


class Census(logging.Handler):
    """Of the logger spark_supplier. left: files and processes of earlier attempts. jvm: java.lang of the driver's."""

    # What the second half of the restarts may have more than the first half. Sizes in MiB.
    SLACK = {"descriptors": 5, "threads": 5, "heap": 16, "memory of Python": 16, "shared memory": 16}

    def __init__(self, jvm, memory):
        super().__init__()
        self._jvm = jvm
        self._memory = memory
        self._driver = [os.getpid(), jvm.ProcessHandle.current().pid()]
        self.left = set()
        self.counts = []

    def emit(self, record):
        if "the ranks are started again" not in record.getMessage():
            return
        self.left |= {*os.listdir(self._memory), *processes_of_runs()}
        self._jvm.System.gc()
        runtime = self._jvm.Runtime.getRuntime()
        threads = [thread.getName() for thread in self._jvm.Thread.getAllStackTraces().keySet()]
        (python, python_shared), (_, java_shared) = map(_memory_of, self._driver)
        self.counts.append(
            {
                "descriptors": sum(len(os.listdir(f"/proc/{process}/fd")) for process in self._driver),
                # Spark's pools for what the garbage collector has found grow to 100 threads.
                "threads": threading.active_count() + sum(not name.startswith("block-manager-") for name in threads),
                "heap": (runtime.totalMemory() - runtime.freeMemory()) / _MIB,
                "memory of Python": python,
                "shared memory": python_shared + java_shared,
            }
        )

    def grown(self):
        middle = len(self.counts) // 2
        first, second = (
            {name: max(count[name] for count in half) for name in self.SLACK}
            for half in (self.counts[:middle], self.counts[middle:])
        )
        return [name for name, slack in self.SLACK.items() if second[name] > first[name] + slack]


def _memory_of(process):
    """MiB in all, and of files and shared memory."""
    with open(f"/proc/{process}/statm") as file:
        _, resident, shared, *_ = file.read().split()
    return [int(pages) * os.sysconf("SC_PAGE_SIZE") / _MIB for pages in (resident, shared)]


@pytest.fixture
def checkpoints(tmp_path):
    return tmp_path / "checkpoints"


class Deadly:
    """Kills the rank that pickles it."""

    def __reduce__(self):
        os.kill(os.getpid(), signal.SIGKILL)


def faults_of(folder, *faults):
    """For seen_rows: the step and kind of each, and the mark that it has happened."""
    return [(step, kind, str(folder / f"fault-{number}")) for number, (step, kind) in enumerate(faults)]


def seen_rows(data, faults, save_at=1):
    """The rows of each rank in their order. faults: what happens to a rank, each once."""
    from torch import distributed

    rank, ranks = distributed.get_rank(), distributed.get_world_size()

    def is_new(step, kind):
        marks = [pathlib.Path(mark) for at, what, mark in faults if (at, what) == (step, kind)]
        new = [mark for mark in marks if rank == data.restarts % ranks and not mark.exists()]
        if new:
            new[0].touch()
        return bool(new)

    found, step = [], 0
    if ranks == len(data.saved_ranks):
        found, step = data.saved
    elif rank == 0:
        found = [row for then in data.saved_ranks for row in data.saved_of(then)[0]]
    for epoch in data.epochs():
        for batch in epoch:
            found += [(epoch.number, int(row)) for row in batch["id"]]
            step += 1
            if is_new(step, "rank"):
                os.kill(os.getpid(), signal.SIGKILL)
            if is_new(step, "node process"):
                os.kill(os.getppid(), signal.SIGKILL)
                # With it this process ends.
                signal.pause()
            if save_at and step % save_at == 0:
                data.save(Deadly() if is_new(step, "in a save") else (found, step))
            if is_new(step, "after a save"):
                os.kill(os.getpid(), signal.SIGKILL)
    shares = [None] * ranks
    distributed.all_gather_object(shares, found)
    return shares, data.restarts, data.last_failure


def numbered(spark, count=ROWS, **others):
    """Rows(…) of a frame of that many numbers."""
    options = {"columns": ["id"], "batch_size": BATCH, "epochs": EPOCHS, "seed": 3, "uneven": "keep", **others}
    return Rows(rows(spark, count), **options)


@pytest.mark.parametrize("kinds", [KINDS[1:3], pytest.param(KINDS, marks=pytest.mark.long)])
def test_each_row_once_whatever_is_killed(spark, memory, checkpoints, tmp_path, kinds):
    faults = faults_of(tmp_path, *zip((2, 3, 5, 9), kinds))
    supplier = Supplier(ranks=2, restarts=len(faults), folder=memory, checkpoints=checkpoints)
    found, restarts, last = supplier.run(seen_rows, numbered(spark, shuffle="rows"), faults=faults)
    assert collections.Counter(sum(found, [])) == ONCE
    assert restarts == len(faults)
    assert "was killed by SIGKILL" in last
    assert sorted(name.name for name in checkpoints.iterdir() if (name / "complete").exists())


@pytest.mark.long
@only_classic("it looks into the driver's JVM")
def test_nothing_grows_with_twenty_restarts(spark, memory, checkpoints, tmp_path):
    # In each way, and in each step twice in a row.
    faults = faults_of(tmp_path, *((2 + time // 2, KINDS[time % len(KINDS)]) for time in range(20)))
    census = Census(spark._jvm.java.lang, memory)
    logging.getLogger("spark_supplier").addHandler(census)
    try:
        found, restarts, _ = Supplier(ranks=2, restarts=len(faults), folder=memory, checkpoints=checkpoints).run(
            seen_rows, numbered(spark), faults=faults
        )
    finally:
        logging.getLogger("spark_supplier").removeHandler(census)
    assert collections.Counter(sum(found, [])) == ONCE
    assert (restarts, census.left, census.grown()) == (len(faults), set(), []), census.counts
    assert len(census.counts) == len(faults)


@pytest.mark.long
def test_after_the_last_checkpoint_rows_come_again_in_the_same_order(spark, memory, checkpoints, tmp_path):
    undisturbed, *_ = Supplier(ranks=2, folder=memory, checkpoints=tmp_path / "others").run(
        seen_rows, numbered(spark), faults=[]
    )
    faults = faults_of(tmp_path, (1, "rank"), (4, "rank"), (11, "rank"))
    found, restarts, _ = Supplier(ranks=2, restarts=3, folder=memory, checkpoints=checkpoints).run(
        seen_rows, numbered(spark), faults=faults, save_at=3
    )
    assert (found, restarts) == (undisturbed, 3)


def test_a_new_call_begins_where_another_one_has_failed(spark, memory, checkpoints, tmp_path, caplog):
    faults = faults_of(tmp_path, (3, "rank"), (5, "rank"))
    with pytest.raises(
        RankError, match=r"SIGKILL.*\nBefore it failed:\nattempt 1, from the beginning: rank . on .*SIGKILL"
    ) as raised:
        Supplier(ranks=2, restarts=1, folder=memory, checkpoints=checkpoints).run(
            seen_rows, numbered(spark), faults=faults
        )
    assert raised.value.rank in (0, 1)
    newest = max(checkpoints.iterdir(), key=lambda folder: int(folder.name.split("-")[1]))
    (checkpoints / "checkpoint-90").mkdir()
    (checkpoints / "checkpoint-91").mkdir()
    (checkpoints / "checkpoint-91" / "complete").write_text('{"text": "')
    # Three ranks continue what two have begun.
    found, restarts, last = Supplier(ranks=3, folder=memory, checkpoints=checkpoints).run(
        seen_rows, numbered(spark), faults=faults, save_at=0, resume=True
    )
    assert collections.Counter(sum(found, [])) == ONCE
    assert (restarts, last) == (0, None)
    assert newest.exists()
    assert re.search(
        r"skipped as checkpoints: \S*/checkpoint-91: .*; \S*/checkpoint-90: it was not completed", caplog.text
    )


@pytest.mark.long
def test_without_a_folder_ranks_begin_at_the_beginning(spark, memory, tmp_path):
    def count(data, mark):
        count = sum(len(batch["id"]) for batch in data)
        if not pathlib.Path(mark).exists():
            pathlib.Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return count, data.saved, data.saved_ranks

    supplier = Supplier(ranks=1, restarts=1, folder=memory, backend=None)
    assert supplier.run(count, rows(spark, 10), str(tmp_path / "mark")) == (10, None, [])


@pytest.mark.long
def test_a_failure_twice_from_one_checkpoint(spark, memory, checkpoints):
    def fail(data):
        if not data.restarts:
            data.save({"step": 0})
        raise ValueError("a bad row")

    with pytest.raises(RankError, match="twice from the same place") as raised:
        Supplier(ranks=1, restarts=9, folder=memory, backend=None, checkpoints=checkpoints).run(
            fail, Rows(rows(spark, ROWS), columns=["id"])
        )
    assert "attempt 2, from checkpoint 1: rank 0 on" in str(raised.value)
    assert "attempt 3" not in str(raised.value)


@pytest.mark.long
def test_two_calls_in_one_folder(spark, memory, checkpoints):
    def save(data, folder):
        import json
        import shutil
        import time

        if data.restarts:
            return
        data.save({"of": "this call"})
        own, other = (pathlib.Path(folder, f"checkpoint-{number}") for number in (1, 2))
        complete = None
        while complete is None:
            time.sleep(0.1)
            # The driver writes it meanwhile.
            with contextlib.suppress(FileNotFoundError, ValueError):
                complete = json.loads((own / "complete").read_text())
        text = {**json.loads(complete["text"]), "call": "another one"}
        shutil.copytree(own, other)
        (other / "complete").write_text(json.dumps({**complete, "text": json.dumps(text)}))
        os.kill(os.getpid(), signal.SIGKILL)

    wanted = f"another call writes checkpoints into {checkpoints}: give each call a folder of its own.*SIGKILL"
    with pytest.raises(RunError, match=f"(?s){wanted}"):
        Supplier(ranks=1, restarts=1, folder=memory, backend=None, checkpoints=checkpoints).run(
            save, Rows(rows(spark, 10), columns=["id"]), str(checkpoints)
        )


@pytest.mark.long
def test_a_killed_rank_may_have_begun_a_checkpoint(spark, memory, checkpoints):
    def save(data):
        if data.restarts > 1:
            data.save({"step": 1})
        if data.restarts < 3:
            os.kill(os.getpid(), signal.SIGKILL)

    Supplier(ranks=1, restarts=3, folder=memory, backend=None, checkpoints=checkpoints).run(
        save, Rows(rows(spark, 10), columns=["id"])
    )
    # Its number is not given again.
    assert {folder.name for folder in checkpoints.iterdir()} == {"checkpoint-3", "checkpoint-5"}


@pytest.mark.long
def test_each_rank_saves_its_shard_when_it_is_due(spark, memory, checkpoints):
    def save(data):
        from torch import distributed

        rank = distributed.get_rank()
        made = []

        def shard():
            made.append(rank)
            return {"shard": rank}

        saved = [data.save(shard) for _ in data]
        return saved, made

    def load(data):
        return data.saved, data.saved_ranks, [data.saved_of(rank) for rank in range(4)]

    seldom, often = Checkpoints(checkpoints, every="1 h"), Checkpoints(checkpoints, every=1e-6, keep=2)
    saved, made = Supplier(ranks=2, folder=memory, checkpoints=seldom).run(save, numbered(spark, epochs=1))
    assert (any(saved), made) == (False, [])
    saved, made = Supplier(ranks=2, folder=memory, checkpoints=often).run(save, numbered(spark, epochs=1))
    assert (all(saved), len(made)) == (True, ROWS // BATCH // 2)
    assert len(list(checkpoints.iterdir())) == 2
    with Supplier(ranks=1, folder=memory, checkpoints=checkpoints) as supplier:
        own, holders, shards = supplier.run(load, numbered(spark, epochs=1), resume=True)
    assert (own, holders) == ({"shard": 0}, [0, 1])
    assert shards == [{"shard": 0}, {"shard": 1}, None, None]


@pytest.mark.long
def test_as_many_ranks_as_fit(spark, memory):
    def world(data):
        from torch import distributed

        return distributed.get_world_size()

    assert Supplier(ranks=8, min_ranks=2, folder=memory).run(world, Rows(rows(spark, ROWS), columns=["id"])) == 4
    with pytest.raises(RunError, match="8 ranks need 8 task slots"):
        Supplier(ranks=8, min_ranks=5, folder=memory).run(world, Rows(rows(spark, ROWS), columns=["id"]))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"checkpoints": ""}, "checkpoints is '' .str.: it must be the path of a folder"),
        ({"checkpoints": Checkpoints("/tmp", every=1), "backend": None}, r"Checkpoints.every=…. needs a backend"),
        ({"checkpoints": "nofs://host/x"}, "the folder of checkpoints nofs://host/x cannot be used"),
        ({"min_ranks": 3, "ranks": 2}, "min_ranks is 3, and ranks is 2"),
        ({"min_ranks": 0}, "min_ranks is 0"),
        ({"restarts": -1}, "restarts is -1"),
    ],
)
def test_wrong_options(spark, memory, wrong, says):
    with pytest.raises(RunError, match=says):
        call(print, rows(spark, 10), folder=memory, **wrong)


@pytest.mark.parametrize(("wrong", "says"), [
    ({"folder": None}, "folder is None"), ({"every": "soon"}, "every is 'soon'"), ({"every": 0}, "every is 0"),
    ({"keep": 0}, "keep is 0"),
])  # fmt: skip
def test_wrong_checkpoints(wrong, says):
    with pytest.raises(ValueError, match=says):
        Checkpoints(**{"folder": "/tmp", **wrong})


@pytest.mark.long
def test_a_call_with_results_saves_nothing_and_may_resume(spark, memory, checkpoints, caplog):
    def save(data):
        data.save({"weight": 7})
        return [data.saved]

    def predict(data):
        with data.results() as out:
            for batch in data:
                out.write(batch)
        return data.saved

    with Supplier(ranks=1, folder=memory, checkpoints=checkpoints) as supplier:
        assert supplier.run(save, numbered(spark), resume=True) == [None]
        assert f"no complete checkpoint is in {checkpoints} yet: ranks start at the beginning" in caplog.text
        with supplier.run(predict, numbered(spark, epochs=1), results="id", resume=True) as found:
            assert (found.value, found.rows.count()) == ({"weight": 7}, ROWS)
        with pytest.raises(RankError, match="the call has results=, which save none"):
            supplier.run(save, numbered(spark), results="id")


def global_batches(data, killed_at=()):
    """The batches of all ranks together. killed_at: of each attempt, the number of batches after which it ends."""
    from torch import distributed

    ranks = distributed.get_world_size()
    found = list(data.saved or [])
    for epoch in data.epochs():
        for batch in epoch:
            shares: list[list[int]] = [[]] * ranks
            distributed.all_gather_object(shares, [int(row) for row in batch["id"]])
            found.append((epoch.number, sum(shares, [])))
            data.save(found if distributed.get_rank() == 0 else None)
            if len(found) in killed_at[data.restarts : data.restarts + 1] and distributed.get_rank() == ranks - 1:
                os.kill(os.getpid(), signal.SIGKILL)
    return found


@pytest.mark.long
def test_the_sequence_of_batches_with_any_number_of_ranks(spark, memory, checkpoints, tmp_path):
    batch = 24
    several = {"order": "global", "batch_size": batch, "shuffle": "rows"}
    of_four = Supplier(ranks=4, folder=memory, checkpoints=tmp_path / "of four").run(
        global_batches, numbered(spark, **several)
    )
    assert [epoch for epoch, _ in of_four] == [0] * (ROWS // batch) + [1] * (ROWS // batch)
    assert collections.Counter(sum((batch for _, batch in of_four), [])) == dict.fromkeys(range(ROWS), EPOCHS)
    # In the middle of the first epoch, and at its end.
    with pytest.raises(RankError, match="SIGKILL"):
        Supplier(ranks=3, restarts=1, folder=memory, checkpoints=checkpoints).run(
            global_batches, numbered(spark, **several), killed_at=(3, 8)
        )
    of_two = Supplier(ranks=2, restarts=1, folder=memory, checkpoints=checkpoints).run(
        global_batches, numbered(spark, **several), killed_at=(12,), resume=True
    )
    assert of_two == of_four


def rows_until(data, last=None):
    """The rows of all ranks, until each has saved after the batch that is number last in an epoch."""
    from torch import distributed

    def found():
        for epoch in data.epochs():
            for step, batch in enumerate(epoch):
                yield from [(epoch.number, int(row)) for row in batch["id"]]
                if (epoch.number, step) == last:
                    data.save({})
                    return

    shares: list[list[tuple[int, int]]] = [[]] * distributed.get_world_size()
    distributed.all_gather_object(shares, list(found()))
    return collections.Counter(sum(shares, []))


# One rank gets nothing of the second batch. In the second epoch it knows that.
@pytest.mark.long
@pytest.mark.parametrize(("uneven", "last"), [("keep", (1, 0)), ("pad", (0, 1)), ("pad", (1, 0))])
def test_other_ranks_continue_at_a_last_batch_that_is_smaller(spark, memory, checkpoints, uneven, last):
    seventy = numbered(spark, 70, uneven=uneven, order="global", batch_size=64)
    before = Supplier(ranks=2, folder=memory, checkpoints=checkpoints).run(rows_until, seventy, last)
    after = Supplier(ranks=3, folder=memory, checkpoints=checkpoints).run(rows_until, seventy, resume=True)
    wanted = {(epoch, row) for epoch in range(EPOCHS) for row in range(70)}
    assert set(before + after) == wanted
    if uneven == "keep":
        assert before + after == dict.fromkeys(wanted, 1)


@pytest.mark.long
def test_a_global_order_needs_rows_in_a_certain_order(spark, memory):
    with pytest.raises(RunError, match="Spark computes these in no certain order"):
        Supplier(ranks=1, folder=memory).run(
            rows_until, Rows(rows(spark, 10).repartition(2), columns=["id"], order="global")
        )


@pytest.mark.parametrize(("wrong", "says"), [
    ("a module", r"pass its state_dict\(\)"), ("a file", "the driver cannot save the checkpoint: "),
    pytest.param("no folder", "the Supplier has no checkpoints=", marks=pytest.mark.long),
    pytest.param("a folder in place of a file", "the driver cannot save the checkpoint: ", marks=pytest.mark.long),
])  # fmt: skip
def test_a_state_that_cannot_be_saved(spark, memory, checkpoints, wrong, says):
    given = {} if wrong == "no folder" else {"checkpoints": checkpoints}

    def save(data, folder, wrong):
        import shutil

        import torch

        if wrong == "a file":
            shutil.rmtree(folder)
            open(folder, "w").close()
        elif wrong == "a folder in place of a file":
            os.makedirs(f"{folder}/checkpoint-1/complete")
        data.save(torch.nn.Linear(1, 1) if wrong == "a module" else {"step": 1})

    with pytest.raises(RunError, match=says):
        Supplier(ranks=1, folder=memory, backend=None, **given).run(save, numbered(spark, 10), str(checkpoints), wrong)


@pytest.mark.long
def test_an_exchange_saves_between_epochs(spark, memory, checkpoints, caplog):
    caplog.set_level(logging.INFO, "spark_supplier")

    def save(data):
        for epoch in data.epochs():
            for _ in epoch:
                pass
            data.save({"epoch": epoch.number})
        return data.saved

    supplier = Supplier(ranks=2, folder=memory, checkpoints=checkpoints)
    assert supplier.run(save, numbered(spark, shuffle="all")) is None
    assert "checkpoint 2 is complete" in caplog.text

    def save_inside(data):
        for _ in data:
            data.save({})

    with pytest.raises(RunError, match="in the middle of an epoch with shuffle='all'"):
        supplier.run(save_inside, numbered(spark, shuffle="all"))


@pytest.mark.long
def test_a_checkpoint_of_different_epochs_is_not_used(spark, memory, checkpoints, caplog):
    def save(data):
        from torch import distributed

        # Rank 1 has half of its first epoch, and rank 0 the first rows of the next one.
        for epoch in data.epochs():
            for _ in epoch:
                if epoch.number == 1 - distributed.get_rank():
                    data.save({})
                    return

    supplier = Supplier(ranks=2, folder=memory, checkpoints=checkpoints)
    supplier.run(save, numbered(spark))
    assert "checkpoint 1 is not used: its ranks are in different epochs" in caplog.text
    supplier.run(lambda data: None, numbered(spark), resume=True)
    assert f"no complete checkpoint is in {checkpoints} yet" in caplog.text


@pytest.mark.long
@only_classic("the program has a session of its own")
def test_a_killed_executor():
    found = found_by("restart_program.py")
    assert (found["once"], found["restarts"]) == (True, 1)
    assert "the ranks have ended with Spark's task that keeps them" in found["why"]


@pytest.mark.long
def test_what_the_driver_cannot_read_is_not_computed_again(spark, memory, tmp_path):
    class Unreadable:
        def __reduce__(self):
            return eval, ("1 / 0",)

    def train(data, marks):
        (pathlib.Path(marks) / str(data.restarts)).touch()
        return Unreadable()

    with pytest.raises(RunError, match="all ranks have returned, but the driver cannot unpickle"):
        Supplier(ranks=1, restarts=2, folder=memory).run(train, spark.range(9), marks=str(tmp_path))
    assert [mark.name for mark in tmp_path.iterdir()] == ["0"]


@pytest.mark.long
def test_each_rank_needs_a_row_of_a_global_batch(spark, memory, caplog):
    with pytest.raises(RunError, match="batch_size is 1, and with order='global' it is that of all 2 ranks together"):
        Supplier(ranks=2, restarts=2, folder=memory).run(list, Rows(spark.range(9), order="global", batch_size=1))
    assert "started again" not in caplog.text
