"""Runs the Python examples of the documents: ranks with a task of the test, PySpark programs with ranks of the test."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import pyarrow
import pytest
import spark_supplier
from pyarrow import parquet

from layout import JAR, ROOT, SPARK_PYTHON
from rank_server import SERVER
from task import Task, wait_until
from values import batch

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 240
RANK_DOCUMENTS = ["RANKS.md", "EXCHANGE.md", "SLURM.md"]
# A part of each program that supplies ranks which something else starts.
SUPPLIES = 'format("supply")'


def examples(document):
    text = (ROOT / "docs" / document).read_text()
    found = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == text.count("```python") > 0
    return found


def rank_examples(document):
    return [example for example in examples(document) if SUPPLIES not in example]


# The function that the examples leave to the reader.
TRAIN = "def train(data, label):\n    assert data.shape[1:] == (2,) and len(data) == len(label) > 0\n"

# A program with MPI that runs without mpirun.
ALONE = {"LOCAL_RANK": "0", "OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_btl": "self,vader"}

# The states of four ranks that have stopped before their first batch.
STATES = 'states = [{"position": None}] * 4'


@pytest.mark.parametrize(
    "document, number", [(name, number) for name in RANK_DOCUMENTS for number in range(len(rank_examples(name)))]
)
def test_the_examples_of_ranks(files, document, number):
    example = rank_examples(document)[number]
    conf = files.folder / "conf"
    conf.mkdir(mode=0o700)
    environment = {"SUPPLY_TIMEOUT": "30", **ALONE}
    for name in ("mapped-files", "named-pipes"):
        # The ranks of slurm-run find the files by these variables.
        environment[f"SUPPLY_{name.upper().replace('-', '_')}"] = str(conf / f"{name}.conf")
        shutil.copy(files.folder / f"{name}.conf", conf)
    rank = subprocess.Popen(
        [sys.executable, "-c", TRAIN + example], cwd=files.folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        wait_until("the pair", lambda: rank.poll() is not None or files.is_open())
        task = Task(*files.paths)
        data = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(range(128), "float32"), 2)
        epochs = 2 if ".epochs()" in example else 1
        for epoch in range(epochs):
            for first in (0, 64):
                task.supply(batch(data=data, label=(range(64), "int32")), epoch=epoch, first_element=first)
            task.end_of_epoch(epoch)
        task.end_of_data(epochs - 1)
        task.confirm_end()
        task.leave()
        output = rank.communicate(timeout=60)[0]
        assert rank.returncode == 0, output
    finally:
        rank.kill()


@pytest.mark.long
@pytest.mark.skipif(not SERVER.exists(), reason="no supply-server: libsupply was built without MPI")
def test_the_routine_of_a_reader(tmp_path):
    """Compiled and called as the page says."""
    text = (ROOT / "docs" / "OFFLOAD.md").read_text()
    [program] = [example for example in examples("OFFLOAD.md") if example.startswith("# sums.py")]
    [compile_it] = re.findall(r"^ {4}(mpicc .*)$", text, re.MULTILINE)
    (tmp_path / "mpi-client").symlink_to(ROOT / "mpi-client")
    (tmp_path / "routines").mkdir()
    subprocess.run(compile_it, shell=True, cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_SECONDS,
        env={**os.environ, "PATH": f"{SERVER.parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0 and "[2000. 1000.]\n" in done.stdout, done.stdout + done.stderr


def epochs_of(config, local_rank):
    """The ids of each epoch."""
    with spark_supplier.ranks.open(config, local_rank, timeout=LIMIT_SECONDS) as s:
        epochs = []
        while not s.at_end_of_data:
            epochs.append([number for block in s.epoch() for number in block.numpy("id").tolist()])
    return epochs[:-1]


def test_the_examples_of_dataframes(tmp_path):
    for folder, first in (("train", 0), ("incoming", 1000)):
        (tmp_path / "data" / folder).mkdir(parents=True)
        for file in range(4):
            numbers = range(first + 10 * file, first + 10 * file + 10)
            parquet.write_table(pyarrow.table({"id": numbers}), tmp_path / "data" / folder / f"{file}.parquet")
    jar = tmp_path / JAR.relative_to(ROOT)
    jar.parent.mkdir(parents=True)
    jar.symlink_to(JAR)
    make_configs = [ROOT / "launch" / "make-configs", "2", tmp_path / "pairs", tmp_path / "conf"]
    subprocess.run(make_configs, check=True, stdout=subprocess.DEVNULL)
    pages = ("RANKS.md", "RESTARTS.md", "STREAMS.md")
    programs = [example for page in pages for example in examples(page) if SUPPLIES in example]
    assert len(programs) == len(pages)
    with concurrent.futures.ThreadPoolExecutor(2) as ranks, open(tmp_path / "log", "w+") as log:
        runs = [
            ranks.submit(lambda rank: [epochs_of(tmp_path / "conf", rank) for _ in range(3)], rank) for rank in (0, 1)
        ]
        program = subprocess.run(
            [SPARK_PYTHON, "-c", "\n".join([STATES, *programs])], cwd=tmp_path, stdout=log, stderr=log,
            env={**os.environ, "PYSPARK_SUBMIT_ARGS": "--master local[4] pyspark-shell"}, timeout=LIMIT_SECONDS,
        )  # fmt: skip
        assert program.returncode == 0, (tmp_path / "log").read_text()[-2000:]
        (first, first_rest, first_stream), (second, second_rest, second_stream) = (run.result() for run in runs)
    for mine, theirs in ((first, second), (first_rest, second_rest)):
        assert [sorted(a + b) for a, b in zip(mine, theirs)] == [list(range(40))] * 10
    batches = first_stream + second_stream
    assert sorted(number for batch in batches for number in batch) == list(range(1000, 1040))


def test_the_table_of_trainers_has_every_program():
    page = (ROOT / "docs" / "COMING-FROM.md").read_text()
    linked = re.findall(r"^\| \[.*?\]\(\S+/(\w+\.py)\)", page, re.MULTILINE)
    # These need no trainer.
    others = {"spark_side.py", "with_mlflow.py", "with_tensorboard.py"}
    programs = (ROOT / "mpi-client" / "python" / "examples" / "trainers").glob("*.py")
    assert set(linked) == {path.name for path in programs} - others
