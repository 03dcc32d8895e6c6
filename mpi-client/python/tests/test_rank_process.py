"""The process of a rank: its environment, its modules, its children and what it prints, as in a program of its own."""

import importlib
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import re
import resource
import shutil
import site
import subprocess
import sys
import time

import pytest
from pyspark.sql import SparkSession
from spark_supplier import Mpirun, RankError, Rows
from spark_supplier.driver.function_checks import check_arguments
from spark_supplier.driver.progress import Printer, ProgressBar, printable
from spark_supplier.errors import RunError
from spark_supplier.node.checkpoints import _Compact
from spark_supplier.node.environment import path_entries
from spark_supplier.node.job import Job, Script
from spark_supplier.node.node import lift_memory_limit
from spark_supplier.node.rank import _pickled_result

from supplier_session import call, rows, shared_memory

# Of this machine, and not the one that ranks take.
ADDRESS = "127.0.0.2"
NOBODY = 65534


@pytest.fixture(scope="module")
def spark():
    import spark_supplier

    settings = {
        "spark.jars": spark_supplier.jars(), "spark.ui.enabled": "false", "spark.log.level": "OFF",
        # A laptop that has left its network no longer has the address of its session.
        "spark.driver.host": ADDRESS,
    }  # fmt: skip
    builder = SparkSession.builder.master("local[3]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def run(spark):
    """Supplier.run of a function or script on a few rows. After it, nothing is left."""
    with shared_memory() as folder:

        def run_in_folder(function, *, launcher="torch", **options):
            launcher = Mpirun() if launcher == "mpirun" else launcher
            return call(function, rows(spark, 20, 2), launcher=launcher, folder=folder, uneven="keep", **options)

        yield run_in_folder


@pytest.fixture
def folder_in_path(tmp_path, monkeypatch):
    """A folder of which the driver imports modules, as of the one of a program. Workers of Spark are elsewhere."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def test_installed_packages_of_the_driver_are_not_for_ranks(folder_in_path):
    """Its Python may be another one than theirs."""
    sent = path_entries()
    assert sent[0] == str(folder_in_path)
    assert not set(sent) & {*site.getsitepackages(), os.path.dirname(os.__file__)}


def describe():
    """A function for ranks, which cannot import this module."""

    def described(data, others=()):
        import subprocess

        import torch

        children = [
            subprocess.run([python, "-c", "import re, json; print(re.sub('a', 'b', 'a'))"], capture_output=True)
            for python in others
        ]
        print("é → \udc80")
        return {
            "environment": dict(os.environ), "threads": torch.get_num_threads(),
            "children": [(child.stdout, child.stderr) for child in children],
        }  # fmt: skip

    return described


def other_pythons():
    """One of each other version that this machine has."""
    mine = f"python3.{sys.version_info.minor}"
    found = [shutil.which(f"python3.{minor}") for minor in range(9, 16)]
    found += [str(path) for path in pathlib.Path.home().glob(".pyenv/versions/*/bin/python3.[0-9]*")]
    by_name = {pathlib.Path(path).name: path for path in found if path and re.search(r"python3\.\d+$", path)}
    return [path for name, path in by_name.items() if name != mine]


def test_the_environment_of_a_rank(run, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    printed = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", write_through=True)
    monkeypatch.setattr(sys, "stdout", printed)
    others = other_pythons()
    rank = run(describe(), args=(others,))
    cores = len(os.sched_getaffinity(0))
    assert rank["threads"] == int(rank["environment"]["OMP_NUM_THREADS"]) and 1 <= rank["threads"] <= cores
    if not pathlib.Path("/sys/fs/cgroup/cpu.max").exists():
        assert rank["threads"] == cores, "PySpark sets 1"
    assert rank["environment"]["MASTER_ADDR"] == "127.0.0.1"
    assert rank["children"] == [(b"b\n", b"")] * len(others)
    path = rank["environment"]["PYTHONPATH"].split(os.pathsep)
    assert not [entry for entry in path if "lib/python3" in entry and entry.endswith(("-packages", "3.11", "dynload"))]
    assert not [entry for entry in path if entry.endswith("/pyspark.zip")], "PySpark is installed"
    assert "[rank 0] é \\u2192 \\udc80".encode("latin-1") in printed.buffer.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("launcher", ["torch", "mpirun"])
def test_the_threads_that_the_user_sets_are_first(run, monkeypatch, launcher):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    two = run(describe(), ranks=2, launcher=launcher)
    assert two["threads"] == 5 and two["environment"]["MASTER_ADDR"] == "127.0.0.1"
    if launcher == "mpirun":
        monkeypatch.delenv("OMP_NUM_THREADS")
        two = run(describe(), ranks=2, launcher=launcher)
        assert two["threads"] <= max(1, len(os.sched_getaffinity(0)) // 2)
    given = run(describe(), ranks=2, launcher=launcher, environment={"OMP_NUM_THREADS": "3"})
    assert given["threads"] == 3


def test_a_user_who_may_not_lift_the_limit_of_memory():
    def lift(errors):
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        os.environ["PYSPARK_EXECUTOR_MEMORY_MB"] = "4096"
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        try:
            lift_memory_limit("n1")
        except RunError as error:
            errors.send(str(error))
        errors.close()

    fork = multiprocessing.get_context("fork")
    receiving, sending = fork.Pipe(duplex=False)
    child = fork.Process(target=lift, args=(sending,))
    child.start()
    sending.close()
    message = receiving.recv()
    child.join()
    assert re.search(r"spark\.executor\.pyspark\.memory limits .* on n1, .* to 4096 MiB", message)


@pytest.mark.long
def test_functions_of_modules_beside_the_program(run, folder_in_path):
    module = folder_in_path / "beside_program.py"
    module.write_text("def train(data):\n    return sum(len(batch['id']) for batch in data)\n")
    importlib.invalidate_caches()
    train = importlib.import_module("beside_program").train
    assert run(train) == 20
    module.unlink()
    shutil.rmtree(folder_in_path / "__pycache__", ignore_errors=True)
    with pytest.raises(RankError, match="has no module 'beside_program': pass .* with spark.sparkContext.addPyFile"):
        run(train)


SCRIPT = """# -*- coding: latin-1 -*-
import json, os, sys
import model_of_script
import spark_supplier

with open(os.path.join(os.path.dirname(__file__), "data", "numbers.json")) as file:
    print("\xe9", model_of_script.NAME, json.load(file), sys.argv[1:], sum(len(b["id"]) for b in spark_supplier.data()))
"""


@pytest.fixture
def script(tmp_path):
    folder = tmp_path / "program"
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_bytes(SCRIPT.encode("latin-1"))
    (folder / "model_of_script.py").write_text("NAME = 'modèle'\n", encoding="utf-8")
    (folder / "data" / "numbers.json").write_text(json.dumps([1, 2]))
    return folder / "train.py"


def test_a_script_finds_what_lies_beside_it(run, script, capfd):
    run(script, kwargs={"rate": 0.5})
    assert "[rank 0] é modèle [1, 2] ['--rate', '0.5'] 20" in capfd.readouterr().out


def test_a_script_is_copied_to_nodes_without_its_folder(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "import sys, spark_supplier\nprint(sys.argv[1:], sum(len(b['id']) for b in spark_supplier.data()))\n"
    )
    shipped = Script.read(path)
    path.unlink()
    # As on a node: in a process of its own, because a script changes sys.path and sys.argv.
    program = (
        "import pickle, sys, spark_supplier.node.job as job\n"
        "job.set_current_data([{'id': [1, 2, 3]}])\n"
        "pickle.loads(sys.stdin.buffer.read()).run(['word'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(shipped), capture_output=True, timeout=120
    )
    assert done.stdout.decode() == "['word'] 3\n", done.stderr.decode()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_what_an_output_cannot_encode_is_escaped(encoding):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    text = printable("é → 🙂 \udc80", file)
    file.write(text)
    assert text.encode(encoding).decode("unicode_escape" if encoding == "ascii" else encoding)
    assert printable("é", io.StringIO()) == "é"


class Writes:
    """What some programs have in place of a stream."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text


def test_a_driver_without_streams(monkeypatch):
    closed = io.StringIO()
    closed.close()
    own = Writes()
    for stream in (None, closed, own):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        printer, bar = Printer(), ProgressBar(1)
        for name in ("stdout", "stderr"):
            printer.print("a line", name)
        bar.close()
    assert own.text == "a line\n" * 2


def test_messages_are_short_and_options_take_numbers_of_numpy():
    import numpy

    assert Rows(None, repartition=numpy.int64(8)).repartition == 8
    with pytest.raises(RunError, match=r"repartition is \[0, 0.*…: it must be") as raised:
        Rows(None, repartition=[0] * 10**5)  # type: ignore[arg-type]
    assert len(str(raised.value)) < 400
    with pytest.raises(RunError, match="cannot be called with the data, args=.*… and kwargs=.*: missing") as raised:
        check_arguments(lambda data, first, second: None, (list(range(10**5)),), {})
    assert len(str(raised.value)) < 600


def test_the_words_of_a_script():
    class Recorded:
        def run(self, words):
            self.words = words

    script = Recorded()
    kwargs = {"amp": True, "eval": False, "name": None, "layers": [1, 2], "learning_rate": 0.5}
    Job([], script, (3,), kwargs, None).run(None)  # type: ignore[arg-type]
    assert script.words == ["3", "--amp", "--layers", "1", "2", "--learning-rate", "0.5"]


def test_slices_of_tensors_travel_without_the_rest():
    import torch

    whole = torch.arange(10.0**6)
    shared, parameter = whole[5:8], torch.nn.Parameter(whole[:2])
    value = {"a": [shared, shared], "b": whole[::300000], "c": parameter, "d": torch.ones(3, requires_grad=True)}
    saved = io.BytesIO()
    torch.save(value, saved, pickle_module=_Compact)
    for payload, load in ((_pickled_result(value), pickle.loads), (saved.getvalue(), torch_load)):
        assert len(payload) < 20000
        found = load(payload)
        assert found["a"][0] is found["a"][1] and found["a"][0].tolist() == [5, 6, 7]
        assert found["b"].tolist() == [0, 3e5, 6e5, 9e5] and found["d"].requires_grad
        assert isinstance(found["c"], torch.nn.Parameter) and found["c"].tolist() == [0, 1]


def torch_load(payload):
    import torch

    return torch.load(io.BytesIO(payload))


def test_spark_is_not_started_again_in_a_rank(run):
    def train(data):
        from pyspark.sql import SparkSession

        return SparkSession.builder.getOrCreate()

    with pytest.raises(RankError, match="a rank has no Spark, which runs in the driver"):
        run(train)


@pytest.mark.parametrize(
    "text", ["import nothing_of_this_name", pytest.param("raise RuntimeError('mine')", marks=pytest.mark.long)]
)
def test_a_module_that_hides_one_of_python_is_named(run, folder_in_path, text):
    (folder_in_path / "http.py").write_text(text)
    with pytest.raises(RankError, match=f"{folder_in_path}/http.py") as raised:
        run(lambda data: None)
    if "import" in text:
        assert f"{folder_in_path}/http.py on " in str(raised.value) and "hides a module of Python" in str(raised.value)


@pytest.mark.parametrize("launcher, has_own_group", [
    pytest.param("torch", False, marks=pytest.mark.long), ("torch", True), ("mpirun", False),
])  # fmt: skip
def test_a_program_that_the_function_starts_ends_with_its_rank(run, launcher, has_own_group):
    def train(data):
        import os
        import subprocess

        return subprocess.Popen(["sleep", "600"], preexec_fn=os.setpgrp if has_own_group else None).pid

    started = pathlib.Path(f"/proc/{run(train, launcher=launcher)}/cmdline")
    end = time.monotonic() + 10
    while started.exists() and b"sleep" in started.read_bytes() and time.monotonic() < end:
        time.sleep(0.1)
    assert not started.exists() or b"sleep" not in started.read_bytes()


# What a rank does with a function, for each kind of process. A lock in a global can only be inherited.
CHILDREN = """
import importlib, sys, threading
from pyspark import cloudpickle
from spark_supplier.node import program
from spark_supplier.node.program import forget_program, share_program
payloads = []
for method in ("fork", "spawn", "forkserver"):
    import children_program
    cloudpickle.register_pickle_by_value(children_program)
    payloads.append((method, cloudpickle.dumps(importlib.reload(children_program).train)))
    del sys.modules["children_program"]
sys.path = [folder for folder in sys.path if folder]
for method, payload in payloads:
    train = cloudpickle.loads(payload)
    if method == "fork":
        train.__globals__["lock"] = train.__globals__["plus"].__globals__["lock"] = threading.Lock()
    share_program(train)
    print(train(method))
    assert program._globals and program._keys
    forget_program()
    assert not program._globals and not program._keys
"""


def test_processes_of_a_function_share_the_globals_of_the_program():
    done = subprocess.run(
        [sys.executable, "-c", CHILDREN], capture_output=True, text=True, timeout=300, cwd=pathlib.Path(__file__).parent
    )
    assert done.stderr == ""
    expected = ([(10, 1), (11, 2), (12, 3)], [22], 11), True, 11, (5,), 0
    assert done.stdout.splitlines() == [repr(expected)] * 3


@pytest.mark.long
def test_workers_that_are_not_forked_get_functions_of_the_program(run):
    factor = 2

    def doubled(batch):
        return batch["id"] * factor

    def train(data):
        import torch
        from spark_supplier.torch import DataLoader

        def begin(worker):
            torch.manual_seed(worker)

        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 3

            def __getitem__(self, index):
                return index**2

        sums = []
        for epoch, method in zip(data.epochs(), ["spawn", "forkserver"]):
            loader = DataLoader(epoch, num_workers=1, multiprocessing_context=method, worker_init_fn=begin)
            sums.append(sum(int(batch.sum()) for batch in loader))
        own = torch.utils.data.DataLoader(
            Squares(), batch_size=None, num_workers=1, multiprocessing_context="spawn", collate_fn=lambda item: item + 1
        )
        return sums, list(own)

    assert run(train, transform=doubled, epochs=2) == ([380, 380], [1, 2, 5])
