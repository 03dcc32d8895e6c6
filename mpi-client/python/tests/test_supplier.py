"""spark_supplier.Supplier.run, with real ranks on this machine."""

import functools
import os
import pickle
import re
import subprocess
import sys
import threading
import zipfile

import pytest
from spark_supplier import Cache, RankError, RunError, RunTimeoutError
from spark_supplier.node.environment import Versions

from layout import ROOT
from supplier_session import call, only_classic, over_connect, rows, session_fixture

RANKS, ROWS, BATCH = 2, 1000, 16
LIMIT_SECONDS = 240


spark = session_fixture(2 * RANKS + 1)


@pytest.fixture
def run(warm):
    """Supplier.run. At the end of the module nothing is left."""

    def run_with_defaults(function, df, *, ranks=RANKS, columns=("id", "features"), uneven="keep", **options):
        return warm(function, df, ranks=ranks, columns=columns, batch_size=BATCH, uneven=uneven, **options)

    return run_with_defaults


@pytest.fixture
def run_alone(warm):
    """Supplier.run with a rank that ends with the call."""
    return functools.partial(call, folder=warm.folder, columns=["id"], batch_size=BATCH)


def gathers_ids():
    """A function for ranks, which cannot import this module: of all ranks, the ids of each epoch of both data sets."""

    def ids(data):
        from torch import distributed

        epochs = [
            [[i for batch in epoch for i in batch["id"].tolist()] for epoch in both]
            for both in zip(data.epochs(), data.validation.epochs())
        ]
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, epochs)
        return gathered

    return ids


def test_rank_0_returns_what_all_ranks_have_had(run, spark, capfd):
    def train(data, greeting):
        import torch
        from torch import distributed

        assert "SUPPLY_HUB_KEY" not in os.environ
        epochs = [[i for batch in epoch for i in batch["id"].tolist()] for epoch in data.epochs()]
        print(greeting, distributed.get_rank(), os.environ["LOCAL_RANK"], torch.__name__)
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, epochs)
        return gathered

    first, second = run(train, rows(spark, ROWS), epochs=2, seed=3, kwargs={"greeting": "hello from"})
    for epoch in range(2):
        assert sorted(first[epoch] + second[epoch]) == list(range(ROWS))
    assert first[0] != first[1]
    output = capfd.readouterr().out.splitlines()
    assert "[rank 0] hello from 0 0 torch" in output and "[rank 1] hello from 1 1 torch" in output


def test_ranks_exchange_elements_over_torch(run, spark):
    # Each rank has one of two partitions, so without an exchange it would have half of the numbers.
    data = rows(spark, ROWS, RANKS)
    gathered = run(gathers_ids(), data, validation=rows(spark, 10, RANKS), shuffle="all", epochs=2)
    for mine, theirs in zip(*gathered):
        assert sorted(mine[0] + theirs[0]) == list(range(ROWS))
        assert ROWS // 4 - 100 < sum(i < ROWS // 2 for i in mine[0]) < ROWS // 4 + 100
        assert sorted([mine[1], theirs[1]]) == [list(range(5)), list(range(5, 10))], "validation is not exchanged"


def test_a_rank_returns_early_from_an_exchange(run, spark):
    def train(data):
        from torch import distributed

        received = 0
        for batch in data:
            received += len(batch["id"])
            if distributed.get_rank() == 1:
                # The other rank still needs this one, which reads the rest when it has returned.
                distributed.destroy_process_group()
                return None
        return received

    assert run(train, rows(spark, ROWS, RANKS), shuffle="all") == ROWS // 2


def test_ranks_read_an_lmdb_in_place(run, spark):
    def train(data):
        import pyarrow
        from torch import distributed

        batches = [batch for epoch in data.epochs() for batch in epoch]
        sums = [sum(int(batch[name].long().sum()) for batch in batches) for name in ("data", "label")]
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, sums)
        return gathered, str(pyarrow.schema(data._opened()).field("data").type)

    lmdb = spark.read.format("lmdb").option("partitions", 4).option("inPlace", True)
    digits = lmdb.load(str(ROOT / "build" / "digits" / "train_lmdb"))
    gathered, kind = run(train, digits, columns=["data", "label"])
    rows = digits.select("data", "label").collect()
    assert [sum(column) for column in zip(*gathered)] == [
        sum(sum(row.data) for row in rows),
        sum(r.label for r in rows),
    ]
    assert kind == "binary_view"


def test_padded_ranks_make_equal_steps_with_validation(run, spark):
    def train(data):
        from torch import distributed

        steps = [
            (len(list(epoch)), sum(len(batch["id"]) for batch in held_out))
            for epoch, held_out in zip(data.epochs(), data.validation.epochs())
        ]
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, steps)
        return gathered

    first, second = run(train, rows(spark, 90, 3), validation=rows(spark, 10, 2), uneven="pad", epochs=2)
    # Three partitions of 30 rows: one rank has two of them.
    assert [steps for steps, _ in first] == [steps for steps, _ in second] == [4, 4]
    # Validation rows are never repeated.
    assert [mine + theirs for (_, mine), (_, theirs) in zip(first, second)] == [10, 10]


def test_later_epochs_of_both_data_sets_come_from_memory(run, spark):
    data, validation = rows(spark, 90, 3), rows(spark, 10, 2)
    first, second = run(gathers_ids(), data, validation=validation, epochs=2, cache="memory")
    for mine, theirs in zip(first, second):
        assert [sorted(a + b) for a, b in zip(mine, theirs)] == [list(range(90)), list(range(10))]


@pytest.mark.long
def test_both_data_sets_are_kept_in_files(run, spark, tmp_path):
    def supply():
        data, validation = rows(spark, 90, 3), rows(spark, 10, 2)
        return run(gathers_ids(), data, validation=validation, epochs=2, cache=Cache(tmp_path, keep="rows"))

    first, second = supply()
    for mine, theirs in zip(first, second):
        assert [sorted(a + b) for a, b in zip(mine, theirs)] == [list(range(90)), list(range(10))]
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(kept) == 2 * RANKS and all(name.endswith(".kept") for name in kept)
    assert supply() == [first, second]
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == kept


def test_a_script_gets_data_and_arguments(run, spark, tmp_path, capfd):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\nimport spark_supplier\n"
        "print(sys.argv[1:], sum(len(batch['id']) for batch in spark_supplier.data()), __name__)\n"
        "sys.exit(0)\n"
    )
    assert run(script, rows(spark, ROWS), kwargs={"learning_rate": 0.5}) is None
    lines = [line for line in capfd.readouterr().out.splitlines() if "--learning-rate" in line]
    assert sorted(line[:8] for line in lines) == ["[rank 0]", "[rank 1]"]
    assert sum(int(count) for line in lines for count in re.findall(r"\] (\d+) __main__", line)) == ROWS


def test_a_column_with_a_dot_in_its_name(run, spark):
    df = rows(spark, ROWS).withColumnRenamed("id", "row.id")
    assert run(lambda data: sum(len(batch["row.id"]) for batch in data), df, columns=["row.id"]) > 0


def test_a_checkpoint_of_two_ranks_resumes_on_three(run, spark, tmp_path):
    def begin(data):
        from torch import distributed

        seen = []
        for batch in data:
            seen += batch["id"].tolist()
            if len(seen) >= 10 * BATCH * (1 + distributed.get_rank()):
                break
        data.save(None)
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, seen)
        return gathered

    def rest(data):
        from torch import distributed

        epochs = [[i for batch in epoch for i in batch["id"].tolist()] for epoch in data.epochs()]
        gathered = [None] * distributed.get_world_size()
        distributed.all_gather_object(gathered, epochs)
        return gathered

    options = {"epochs": 2, "seed": 5, "shuffle": "rows", "checkpoints": tmp_path}
    seen = [i for ids in run(begin, rows(spark, ROWS), **options) for i in ids]
    resumed = run(rest, rows(spark, ROWS), ranks=3, resume=True, **options)
    interrupted, last = ([i for epochs in resumed for i in epochs[epoch]] for epoch in range(2))
    assert sorted(seen + interrupted) == list(range(ROWS)) and len(seen) == 30 * BATCH
    assert sorted(last) == list(range(ROWS))


def test_a_rank_may_return_early_or_not_read_at_all(run, spark):
    def first_batch(data):
        if os.environ["RANK"] == "1":
            return None
        return next(iter(data))["id"].shape[0]

    assert run(first_batch, rows(spark, ROWS), epochs=1000) == BATCH


@pytest.mark.long
def test_only_the_result_of_rank_0_is_pickled(run, spark):
    def train(data):
        return "from rank 0" if os.environ["RANK"] == "0" else threading.Lock()

    assert run(train, rows(spark, ROWS)) == "from rank 0"


@pytest.mark.long
def test_a_result_that_cannot_be_pickled_is_named(run, spark):
    says = r"the function has returned a value of type generator that cannot be pickled \(.*\): return what can travel"
    with pytest.raises(RankError, match=says):
        run(lambda data: (batch for batch in data), rows(spark, ROWS))


@pytest.mark.long
def test_threads_and_processes_that_a_function_leaves_are_named(run_alone, spark, capfd):
    def train(data):
        import multiprocessing
        import time

        # Longer than a busy machine takes from here to the end of the rank.
        threading.Thread(target=time.sleep, args=(8,), name="uploads").start()
        multiprocessing.Process(target=time.sleep, args=(8,), name="copies").start()

    run_alone(train, rows(spark, ROWS))
    says = "[rank 0] the run waits for threads or processes that the function has left running (uploads, copies)"
    assert says in capfd.readouterr().err


@pytest.mark.long
def test_pools_without_work_are_not_named(run_alone, spark, capfd):
    def train(data):
        import sys
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

        pools = [ThreadPoolExecutor(1), ProcessPoolExecutor(1)]
        # They would end with the function.
        vars(sys)["pools"] = pools
        return [pool.submit(abs, -1).result() for pool in pools]

    assert run_alone(train, rows(spark, ROWS)) == [1, 1]
    assert "left running" not in capfd.readouterr().err


@pytest.mark.long
def test_a_pool_of_processes_ends_quietly(run_alone, spark, capfd):
    def train(data):
        import multiprocessing

        with multiprocessing.Pool(2) as pool:
            return sum(pool.map(abs, [-1, 2]))

    assert run_alone(train, rows(spark, ROWS)) == 3
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.long
def test_a_process_group_of_the_function_is_one_too_many(run, spark):
    def train(data):
        from torch import distributed

        distributed.init_process_group("gloo")

    with pytest.raises(RankError, match=r"leave this call out, or set backend=None"):
        run(train, rows(spark, ROWS))


@pytest.mark.long
def test_a_result_that_the_driver_cannot_have_is_named(run, spark):
    def train(data):
        class Unloadable:
            def __reduce__(self):
                return int, ("no number",)

        return Unloadable()

    with pytest.raises(RunError, match=r"cannot unpickle the result of rank 0 \(invalid literal"):
        run(train, rows(spark, ROWS))


def test_tensors_of_a_device_that_the_driver_does_not_have_are_on_the_cpu(run, spark):
    def train(data):
        import torch

        # As of a GPU.
        torch.serialization.register_package(-1, lambda storage: "cuda:7", lambda storage, device: None)
        layer = torch.nn.Linear(2, 1)
        return {"state": layer.state_dict(), "layer": layer, "half": torch.ones(2, dtype=torch.float16)}

    found = run(train, rows(spark, ROWS))
    tensors = [*found["state"].values(), *found["layer"].parameters(), found["half"]]
    assert {tensor.device.type for tensor in tensors} == {"cpu"} and found["half"].tolist() == [1, 1]


def test_an_exception_comes_back_with_rank_and_traceback(run, spark, capfd):
    def train(data):
        for _ in data:
            if os.environ["RANK"] == "1":
                raise ValueError("no such class")

    with pytest.raises(RankError, match=r"^rank 1 on .* failed:\nTraceback") as failure:
        run(train, rows(spark, ROWS))
    assert failure.value.rank == 1 and "in train" in str(failure.value)
    assert str(failure.value).rstrip().endswith("ValueError: no such class")
    assert isinstance(failure.value.__cause__, ValueError)
    assert pickle.loads(pickle.dumps(failure.value)).rank == 1
    # The other rank has not hung.
    assert "most recent call first" not in capfd.readouterr().err


def test_a_killed_rank_is_the_cause_even_if_others_fail_in_a_collective(run, spark):
    def train(data):
        import signal

        import torch
        from torch import distributed

        for step, _ in enumerate(data):
            if step == 3 and os.environ["RANK"] == "1":
                os.kill(os.getpid(), signal.SIGKILL)
            distributed.all_reduce(torch.zeros(1))

    with pytest.raises(RankError, match=r"^rank 1 on .* was killed by SIGKILL"):
        run(train, rows(spark, ROWS))


def test_a_stuck_rank_ends_the_run_and_says_where_it_is(run, spark, capfd):
    def stuck_here(data):
        import time

        for _ in data:
            if os.environ["RANK"] == "1":
                time.sleep(1000)

    # As long as a rank on a busy machine may need to reach its function.
    with pytest.raises(RunTimeoutError, match=r"^rank 1 took no rows .* for 8 s \(stall_timeout\)"):
        run(stuck_here, rows(spark, ROWS), epochs=1000, stall_timeout=8)
    assert re.search(r"\[rank 1\] .* in stuck_here", capfd.readouterr().err)


def test_a_failure_of_spark_is_the_cause(run, spark):
    bad = spark.range(0, ROWS, 1, 4).selectExpr("if(id = 777, raise_error('row 777 is bad'), id) as id")
    with pytest.raises(RunError, match="row 777 is bad"):
        run(lambda data: list(data), bad, columns=["id"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"columns": ["id", "label"]}, r"'label' is not a column \(columns of df: id, features\)"),
        ({"columns": []}, "must be a list of one or more names"),
        ({"ranks": 5}, r"5 ranks need 5 task slots.*local\[5\].*use master local\[6\]"),
        (
            {"function": lambda data: None, "kwargs": {"epochs": 5}},
            r"unexpected keyword argument 'epochs'. 'epochs': use Rows.df, epochs=",
        ),
        ({"function": "no/such/script.py"}, "cannot read the script no/such/script.py"),
    ],
)
def test_wrong_input_is_refused_before_anything_starts(run, spark, options, says):
    with pytest.raises(RunError, match=says):
        run(**{"function": list, "df": rows(spark, ROWS), **options})


def test_a_column_of_a_wrong_type_is_named_with_a_remedy(run, spark):
    df = rows(spark, ROWS).selectExpr(
        "cast(id as decimal(10, 2)) as price", "struct(null as nothing, array(interval 1 day) as days) as pair",
        "map(id, cast(id as decimal(10, 2))) as prices",
    )  # fmt: skip
    says = (
        r"'price' is decimal\(10,2\): cast it to double; 'pair.nothing' is void: it has only nulls.*'prices.values' is"
    )
    with pytest.raises(RunError, match=says):
        run(list, df, columns=["price", "pair", "prices"])
    with pytest.raises(RunError, match="'pair.z' is not a column"):
        run(list, df, columns=["pair.days", "pair.z"])
    with pytest.raises(RunError, match="nulls gives 'x' .* for 'tokens', which is array<int>: give a number"):
        run(list, df.selectExpr("array(1) as tokens"), columns=["tokens"], nulls={"tokens": "x"})


def test_an_object_that_cannot_be_pickled_is_named(run, spark):
    lock = threading.Lock()
    with pytest.raises(RunError, match=r"'lock' \(lock\) cannot be pickled"):
        run(lambda data: lock.acquire(), rows(spark, ROWS))
    with pytest.raises(RunError, match=r"'lock of transform' \(lock\) cannot be pickled"):
        run(list, rows(spark, ROWS), transform=lambda batch: lock)


def test_a_node_with_too_little_memory_is_named(run, spark):
    with pytest.raises(RunError, match=r"the rings of the ranks need \d+ MiB: /dev/shm/.* on .* has \d+ MiB"):
        run(list, rows(spark, ROWS), ring=1 << 50)


@only_classic("the server's environment names the Python of executors")
def test_executors_without_the_package_are_named(run, spark, monkeypatch):
    without = "/usr/bin/python3"
    monkeypatch.setenv("PYSPARK_PYTHON", without)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", without)
    with pytest.raises(RunError, match=f"executor on .*: {without} cannot import spark_supplier .*: install"):
        run(list, rows(spark, ROWS))


def test_another_version_of_the_package_is_refused():
    versions = Versions(supply="0.0.1")
    with pytest.raises(RunError, match=r"spark_supplier is [\d.]+ on n1, but 0.0.1 on the driver: install"):
        versions.check("n1")


@pytest.mark.spark_3_5
def test_the_example_runs_on_spark_3_5():
    [packages] = (ROOT / "build" / "spark-3.5" / "venv" / "lib").glob("python3*/site-packages")
    # The wheel of the tests has the jar of one Spark.
    jar = ROOT / "build" / "spark-3.5" / "target" / "spark-supplier.jar"
    example = ROOT / "mpi-client" / "python" / "examples" / "one_call.py"
    environment = {**os.environ, "PYTHONPATH": str(packages), "SUPPLY_JAR": str(jar)}
    program = subprocess.run(
        [sys.executable, example], env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert "tensor([[" in program.stdout and "[rank 1] epoch 4" in program.stdout, program.stderr[-2000:]


def test_ranks_import_what_the_session_has_shipped(run, spark, tmp_path):
    archive = tmp_path / "shipped.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("shipped_module.py", "ANSWER = 42")
    if over_connect():
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))

    def train(data):
        import shipped_module  # type: ignore[import-not-found]

        for _ in data:
            pass
        return shipped_module.ANSWER

    assert run(train, rows(spark, ROWS)) == 42
