"""Ranks that a Supplier keeps from call to call in its `with` block, on this machine."""

import contextlib
import importlib
import os
import pathlib
import pickle
import signal
import sys
import threading
import time

import pytest
from spark_supplier import Mpirun, RankError, Rows, RunError, RunTimeoutError, Supplier

from supplier_session import only_classic, rows, session_fixture, shared_memory

RANKS, ROWS, BATCH = 2, 1000, 16
LIMIT_SECONDS = 120

# One slot to start ranks.
spark = session_fixture(RANKS + 1)


@pytest.fixture(scope="module")
def folder(spark):
    """For the files of runs. At the end nothing is left of them."""
    with shared_memory() as made:
        yield made


@pytest.fixture(scope="module")
def warm(folder):
    """With the same ranks in each test, or others after a call that failed."""
    with Supplier(RANKS, folder=folder) as supplier:
        yield supplier


@pytest.fixture(scope="module")
def alone(folder):
    """Its ranks have no process group."""
    with Supplier(RANKS, folder=folder, backend=None) as supplier:
        yield supplier


@pytest.fixture(scope="module")
def df(spark):
    return rows(spark, ROWS)


def processes():
    """A function for ranks, which cannot import this module: the process of each, and of what keeps it."""

    def of_ranks(data):
        from torch import distributed

        received = sum(len(batch["id"]) for batch in data)
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, (os.getpid(), os.getppid(), received))
        return gathered

    return of_ranks


def is_killed():
    """A function for ranks, which ends rank 1."""

    def killed(data):
        if os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)

    return killed


def call(supplier, df, **options):
    """The processes of the ranks, after a check that the call was a good one."""
    found = supplier.run(processes(), Rows(df, batch_size=BATCH, uneven="keep", **options))
    assert sum(received for _, _, received in found) == ROWS
    return [rank for rank, _, _ in found]


def is_there(process):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def await_end(process):
    end = time.monotonic() + LIMIT_SECONDS
    while is_there(process) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_there(process)


def test_calls_have_the_same_processes_until_the_block_ends(folder, df):
    with Supplier(RANKS, folder=folder) as supplier:
        first = call(supplier, df)
        assert call(supplier, df, epochs=1, seed=3) == first
        assert [name for name in os.listdir(folder) if "conf" in name] == []
    assert not any(map(is_there, first))
    after = call(Supplier(RANKS, folder=folder), df)
    assert not set(after) & set(first) and not any(map(is_there, after)), "without a block ranks end with a call"


def test_a_call_sees_nothing_of_the_one_before(warm, df):
    def state(data):
        import torch
        from torch import distributed

        # Each call has others.
        own = "SUPPLY_RESULTS_FOLDER"
        return {
            "environment": {name: value for name, value in os.environ.items() if name not in ("MASTER_PORT", own)},
            "folder": os.getcwd(), "argv": sys.argv, "path": sys.path, "streams": sys.stdout is sys.__stdout__,
            "handlers": [signal.getsignal(number) is signal.SIG_DFL for number in (signal.SIGALRM, signal.SIGHUP)],
            "torch": (torch.get_default_dtype(), torch.is_grad_enabled()),
            "threads": torch.get_num_threads(), "group": distributed.is_initialized(),
            "modules": "made_by_call" in sys.modules,
        }  # fmt: skip

    def change(data):
        import io
        import types

        import torch

        os.environ["GREETING"] = "hello"
        del os.environ["PATH"]
        os.chdir("/")
        sys.argv = ["changed"]
        sys.path.insert(0, "/nowhere")
        sys.modules["made_by_call"] = types.ModuleType("made_by_call")
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.alarm(1)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.set_num_threads(7)
        torch.manual_seed(7)
        sys.stdout = io.StringIO()

    before = warm.run(state, df)
    warm.run(change, df)
    after = warm.run(state, df)
    assert before.pop("modules") is False and after.pop("modules") is True, "a module caches what it likes"
    assert after == before
    assert len(call(warm, df)) == RANKS


def test_calls_ranks_epochs_and_workers_have_random_numbers_of_their_own(warm, spark):
    def drawn(_=None):
        import random

        import numpy
        import torch

        return torch.rand(1).item(), numpy.random.rand(), random.random()

    def of_ranks(data, seed=None):
        import torch
        from spark_supplier.torch import DataLoader
        from torch import distributed

        if seed is not None:
            torch.manual_seed(seed + int(os.environ["RANK"]))
        found = [drawn(), *(each for _ in range(2) for each in DataLoader(data, num_workers=2))]
        gathered: list[list[tuple[float, ...]]] = [[]] * distributed.get_world_size()
        distributed.all_gather_object(gathered, found)
        return [each for found in gathered for each in found]

    def run(**kwargs):
        df = spark.range(0, 64, 1, 2)
        return warm.run(of_ranks, Rows(df, epochs=2, batch_size=16, transform=drawn), **kwargs)

    found = [run() for _ in range(3)]
    assert [len(each) for each in found] == [2 * (1 + 2 * 2)] * 3
    for kind in zip(*sum(found, [])):
        assert len(set(kind)) == len(kind)
    first, second = run(seed=7), run(seed=7)
    assert [torch for torch, _, _ in first] == [torch for torch, _, _ in second]
    assert first[1:5] == second[1:5], "PyTorch seeds the others in its workers"


def test_a_function_that_ends_the_process_group_and_makes_another(warm, spark, tmp_path):
    """Equal steps keep no store of the first one, whose port the second one needs."""

    def anew(data, makes, folder):
        from torch import distributed

        rows = 0
        for number, batch in enumerate(data):
            rows += len(batch["id"])
            if number == 1:
                # Otherwise rank 1 could meet the first store once more.
                while makes and os.environ["RANK"] == "1" and not os.path.exists(f"{folder}/gone"):
                    time.sleep(0.05)
                distributed.destroy_process_group()
                if os.environ["RANK"] == "0":
                    open(f"{folder}/gone", "w").close()
                if makes:
                    distributed.init_process_group("gloo")
        return rows

    df = spark.range(0, 160, 1, 8)
    assert warm.run(anew, Rows(df, batch_size=4), True, str(tmp_path)) == 80
    with pytest.raises(RunError, match="initialize it before the first epoch, and destroy it after the last one"):
        warm.run(anew, Rows(df, batch_size=4), False, str(tmp_path))


def test_a_rank_that_returns_early_is_named(warm, spark, monkeypatch):
    # Nobody waits for another cause.
    monkeypatch.setattr("spark_supplier.driver.run._EXPLAIN_SECONDS", 1000)

    def early(data):
        for number, _ in enumerate(data):
            if number == 2 and os.environ["RANK"] == "1":
                return

    text = r"rank 1 has returned after 3 batches of epoch 0, while rank 0 has had \d+ of epoch 0.*same batch"
    with pytest.raises(RunError, match=f"(?s){text}"):
        warm.run(early, Rows(spark.range(0, 160, 1, 8), batch_size=4))


def test_scripts_with_modules_of_the_same_name(alone, df, tmp_path, capfd):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "beside.py").write_text(f"NAME = '{name}'\n")
        script = tmp_path / name / "train.py"
        script.write_text("import sys, beside, spark_supplier\nprint(beside.NAME, sys.argv[1:])\n")
        alone.run(script, df, name)
        assert capfd.readouterr().out.splitlines().count(f"[rank 0] {name} ['{name}']") == 1


def test_modules_that_the_program_finds_later(warm, df, tmp_path, monkeypatch):
    call(warm, df)
    (tmp_path / "found_later.py").write_text("def train(data):\n    return sum(len(batch['id']) for batch in data)\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found_later = importlib.import_module("found_later")
    assert warm.run(found_later.train, df) > 0


def test_all_that_a_call_prints_comes_before_it_returns(alone, df, capfd):
    def prints(data, word):
        import ctypes

        for number in range(100):
            print(word, number)
        print("ends", word, end="", file=sys.stderr)
        ctypes.CDLL(None).printf(f"from C {word}\n".encode())

    for word in ("first", "second"):
        alone.run(prints, df, word)
        printed = capfd.readouterr()
        for rank in range(RANKS):
            of_rank = [line for line in printed.out.splitlines() if line.startswith(f"[rank {rank}] ")]
            assert of_rank[:100] == [f"[rank {rank}] {word} {number}" for number in range(100)]
            assert of_rank[100:] == [f"[rank {rank}] from C {word}"]
            assert f"[rank {rank}] ends {word}" in printed.err.splitlines()


def test_results_stay_when_other_calls_have_come(warm, df):
    def predict(data, add):
        with data.results() as out:
            for batch in data:
                out.write({"id": batch["id"], "sum": batch["id"] + add})

    schema = "id, sum long not null"
    found = [warm.run(predict, Rows(df, columns=["id"]), add, results=schema) for add in (1, 2)]
    call(warm, df)
    for add, results in zip((1, 2), found):
        with results:
            assert results.rows.selectExpr("sum(sum - id)").first()[0] == add * ROWS


def test_ranks_that_return_early_wait_for_the_next_call(warm, df):
    def first_batch(data):
        return os.getpid(), len(next(iter(data))["id"])

    ended = [warm.run(first_batch, Rows(df, batch_size=BATCH, epochs=1000, uneven="keep")) for _ in range(2)]
    assert ended[0] == ended[1] == (call(warm, df)[0], BATCH)


def test_a_call_with_validation_has_room_in_the_same_ranks(spark, folder):
    def count(data):
        both = (data,) if data.validation is None else (data, data.validation)
        return os.getpid(), [sum(len(batch["id"]) for batch in each) for each in both]

    few = rows(spark, 10)
    with Supplier(1, folder=folder, backend=None) as supplier:
        first, counted = supplier.run(count, rows(spark, ROWS))
        assert counted == [ROWS]
        assert supplier.run(count, Rows(few, validation=rows(spark, 20))) == (first, [10, 20])


def test_calls_of_two_threads_take_turns(warm, df):
    found, errors = [], []

    def one():
        try:
            found.append(call(warm, df))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and len(found) == 3 and found[0] == found[1] == found[2]


def test_a_call_after_one_that_failed_has_other_ranks(warm, df):
    def fails(data):
        raise ValueError("no such class")

    first = call(warm, df)
    with pytest.raises(RankError, match="no such class"):
        warm.run(fails, df)
    assert not any(map(is_there, first))
    assert not set(first) & set(call(warm, df))


@pytest.mark.long
def test_a_call_after_one_that_hung_or_was_killed_has_other_ranks(warm, df):
    def hangs(data):
        time.sleep(LIMIT_SECONDS)

    first = call(warm, df)
    warm.stall_timeout = 1
    with pytest.raises(RunTimeoutError, match="stall_timeout"):
        warm.run(hangs, df)
    warm.stall_timeout = None
    with pytest.raises(RankError, match=r"^rank 1 .* was killed by SIGKILL"):
        warm.run(is_killed(), df)
    assert not any(map(is_there, first))
    assert len(call(warm, df)) == RANKS


@pytest.mark.parametrize("kept_by", [False, True], ids=["a rank", "its node process"])
def test_a_call_after_one_of_the_processes_was_killed(warm, df, kept_by):
    found = warm.run(processes(), Rows(df, uneven="keep"))
    rank, node, _ = found[1]
    os.kill(node if kept_by else rank, signal.SIGKILL)
    assert not {rank for rank, _, _ in found} & set(call(warm, df))


def test_ranks_without_a_call_end_after_a_while(folder, df):
    with Supplier(RANKS, folder=folder, idle_timeout=0.5) as supplier:
        first = call(supplier, df)
        for process in first:
            await_end(process)
        assert not set(first) & set(call(supplier, df))


def test_another_run_gets_the_slots_of_ranks_that_wait(warm, folder, df):
    first = call(warm, df)
    # There is no slot to start its ranks.
    assert len(call(Supplier(RANKS, folder=folder), df)) == RANKS
    assert not any(map(is_there, first))


@pytest.mark.long
def test_two_suppliers_take_the_slots_of_ranks_that_wait(warm, folder, df):
    with Supplier(RANKS, folder=folder) as other:
        second = call(other, df)
        call(warm, df)
        assert not any(map(is_there, second))
        assert not set(second) & set(call(other, df))


@only_classic("ranks have OMP_NUM_THREADS of the server")
def test_another_environment_needs_other_ranks(warm, df, monkeypatch):
    first = call(warm, df)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert not set(first) & set(call(warm, df))


def test_what_a_supplier_refuses_that_keeps_ranks_or_is_closed(folder, df):
    supplier = Supplier(RANKS, folder=folder).__enter__()
    with pytest.raises(RunError, match="this Supplier keeps its ranks already"), supplier:
        pass
    with pytest.raises(RunError, match="idle_timeout is 0: it must be a number of seconds above 0"):
        Supplier(1, idle_timeout=0)
    first = call(supplier, df)
    # It has no ranks, and does not keep them.
    copy = pickle.loads(pickle.dumps(supplier))
    assert copy.statistics is None and supplier.statistics is not None
    for closed in (supplier, Supplier(RANKS)):
        for _ in range(2):
            closed.close()
        for use in (lambda: closed.run(list, df), closed.__enter__):  # noqa: B023  now
            with pytest.raises(RunError, match="this Supplier is closed"):
                use()
    assert not any(map(is_there, first)) and not any(map(is_there, call(copy, df)))


@pytest.mark.parametrize("killed", ["between calls", pytest.param("in a call", marks=pytest.mark.long)])
def test_ranks_of_mpirun(folder, df, killed):
    def of_ranks(data):
        from mpi4py import MPI

        return MPI.COMM_WORLD.gather((os.getpid(), sum(len(batch["id"]) for batch in data)))

    def run(supplier):
        found = supplier.run(of_ranks, Rows(df, batch_size=BATCH))
        assert sum(received for _, received in found) == ROWS
        return [rank for rank, _ in found]

    with Supplier(RANKS, folder=folder, launcher=Mpirun(), backend=None) as supplier:
        first = run(supplier)
        assert run(supplier) == first
        if killed == "between calls":
            os.kill(first[1], signal.SIGKILL)
        else:
            with pytest.raises(RankError, match=r"^rank 1 .* was killed by SIGKILL"):
                supplier.run(is_killed(), df)
        assert not set(first) & set(run(supplier))


@pytest.mark.parametrize("within", ["close", pytest.param("run", marks=pytest.mark.long)])
def test_on_report_cannot_use_the_ranks_of_its_call(warm, df, within):
    def report(data):
        for number, _ in enumerate(data):
            data.report(number=number)

    warm.on_report = lambda _: warm.close() if within == "close" else call(warm, df)
    with pytest.raises(RunError, match="in a call of this thread: raise in on_report to end it"):
        warm.run(report, Rows(df, batch_size=BATCH))
    warm.on_report = None
