"""Runs the examples for trainers, with real trainers and a real Spark."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest
import spark_supplier

from feeding import numbers_of
from layout import JAR, ROOT, SPARK_PYTHON

LIMIT_SECONDS = 240
SPARK_MASTER = "--master local[6]"
WEIGHTS = [1, 2, 0]

pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")
import spark_supplier.hf  # noqa: E402
import spark_supplier.xgboost  # noqa: E402
from spark_supplier.torch import Dataset  # noqa: E402

# Read what with_tensorboard.py and with_mlflow.py have written.
BOARD = """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
import glob
kinds = [EventAccumulator(folder) for folder in ["board", *glob.glob("board/seconds_*")]]
for kind in kinds:
    kind.Reload()
losses, *seconds = [len(kind.Scalars(kind.Tags()["scalars"][0])) for kind in kinds]
assert len(seconds) == 3 and len(set(seconds)) == 1
print(f"{losses} losses, {seconds[0]} of each kind of seconds")
"""
TRACKED = """
import mlflow
client = mlflow.MlflowClient()
[run] = client.search_runs(["0"])
losses = client.get_metric_history(run.info.run_id, "loss")
times = [client.get_metric_history(run.info.run_id, f"rank_{rank}_waiting_for_spark") for rank in range(2)]
print(f"{len(losses)} losses, {sum(map(len, times))} times of ranks, {run.data.tags['bound']}")
"""


EXAMPLES = ROOT / "mpi-client" / "python" / "examples" / "trainers"
PAGE = (ROOT / "docs" / "COMING-FROM.md").read_text()


def program_of(section):
    """The example that the table of the page links."""
    [name] = re.findall(rf"^\| \[{section}\]\(\S+/(\w+\.py)\)", PAGE, re.MULTILINE)
    return EXAMPLES / name


PROGRAMS = ROOT / "mpi-client" / "python" / "tests"


class Trainer:
    """Runs programs of the page in a folder."""

    def __init__(self, folder):
        self.folder = folder
        # Debian's PyTorch 1.13 needs a repair. See the file in this folder.
        paths = [str(PROGRAMS / "debian_torch"), os.environ.get("PYTHONPATH")]
        self.environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "SUPPLY_JAR": str(JAR),
            "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "SPARK_CONF_DIR": str(ROOT / "configs" / "spark"),
            "SUPPLY_TIMEOUT": str(LIMIT_SECONDS), "PYSPARK_PYTHON": sys.executable,
            "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(256 << 20), "RAY_USAGE_STATS_ENABLED": "0",
            "MLFLOW_TRACKING_URI": f"file:{folder}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true",
            # Ray keeps its results there.
            "HOME": str(folder),
        }  # fmt: skip
        # PySpark of this environment.
        self.environment.pop("SPARK_HOME", None)
        self._processes: list[subprocess.Popen[str]] = []

    def needs(self, module, version=None):
        """Skips the test if the module is not there, in this version or a later one."""
        pytest.importorskip("pyspark")
        pytest.importorskip(module, version, reason=f"no {module} (make test-trainers)")

    def start(self, *command, submit_args=SPARK_MASTER):
        process = subprocess.Popen(
            [str(word) for word in command], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            env={**self.environment, "PYSPARK_SUBMIT_ARGS": f"{submit_args} pyspark-shell"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def output(self, process):
        output = process.communicate(timeout=LIMIT_SECONDS)[0]
        assert process.returncode == 0, output[-6000:]
        return output

    def run(self, section, **options):
        """The output of the section's program."""
        return self.output(self.start(sys.executable, program_of(section), **options))

    def run_ranks(self, section):
        """The output of the ranks of the section, that torchrun starts."""
        self.make_configs()
        spark = self.start(
            SPARK_PYTHON.with_name("spark-submit"), "--master", "local[2]", "--jars", JAR, EXAMPLES / "spark_side.py"
        )
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
        # Under Python 3.11, PyTorch 1.13 cannot read its own defaults of these options.
        ranks = self.output(self.start(*torchrun, "--redirects", "1", "--tee", "1", program_of(section)))
        self.output(spark)
        return ranks

    def checkpoints(self):
        """How many are complete: all ranks have saved there."""
        return len(list((self.folder / "saved").glob("checkpoint-*/complete")))

    def make_configs(self):
        make_configs = [ROOT / "launch" / "make-configs", "2", self.folder / "pairs", self.folder / "conf"]
        subprocess.run(make_configs, check=True, stdout=subprocess.DEVNULL)

    def kill(self):
        """Ends the programs with everything that they have started."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def trainer(tmp_path):
    made = Trainer(tmp_path)
    yield made
    made.kill()
    pairs = tmp_path / "pairs"
    assert not pairs.exists() or list(pairs.iterdir()) == []


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d*)?", text)]


def assert_is_the_line(text):
    assert numbers(text) == pytest.approx(WEIGHTS, abs=0.5), text


@pytest.mark.long
@pytest.mark.parametrize(
    "section, module", [("torchrun", "torch"), ("StatefulDataLoader", "torchdata.stateful_dataloader")]
)
def test_torchrun(trainer, section, module):
    import torch

    trainer.needs(module)
    ranks = trainer.run_ranks(section)
    lines = re.findall(r"rank (\d): (\d+) steps, \[\[(.*)\]\]$", ranks, re.MULTILINE)
    assert sorted((rank, steps) for rank, steps, _ in lines) == [("0", "60"), ("1", "60")]
    assert_is_the_line(lines[0][2])
    assert lines[0][2] == lines[1][2]
    states = [torch.load(trainer.folder / f"rank-{rank}.pt")["data"] for rank in range(2)]
    assert all("position" in str(state) for state in states)


def test_a_stateful_data_loader_loads_its_state_into_the_data_set(dataset):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader", reason="no torchdata (make test-trainers)")
    data = dataset([6, 6])
    loader = torchdata.StatefulDataLoader(data, batch_size=None)
    batches = iter(loader)
    next(batches)
    other = Dataset(columns=["x"], batch_size=4)
    resumed = torchdata.StatefulDataLoader(other, batch_size=None)
    resumed.load_state_dict(loader.state_dict())
    iter(resumed)
    assert other.state_dict() == data.state_dict() and data.state_dict()["position"]
    assert numbers_of(batches) == [[4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.long
def test_lightning(trainer):
    trainer.needs("pytorch_lightning")
    output = trainer.run("Lightning")
    [(steps, error)] = re.findall(r"^(\d+) steps, validation error (\S+)$", output, re.MULTILINE)
    assert int(steps) == 60
    assert float(error) < 0.1
    assert trainer.checkpoints() == 3


@pytest.mark.long
def test_accelerate(trainer):
    trainer.needs("accelerate")
    output = trainer.run("Hugging Face Accelerate")
    [(steps, weight)] = re.findall(r"^(\d+) steps, \[\[(.*)\]\]$", output, re.MULTILINE)
    assert int(steps) == 60
    assert_is_the_line(weight)
    assert trainer.checkpoints() == 3


@pytest.mark.long
def test_ray_train(trainer):
    trainer.needs("ray.train")
    trainer.make_configs()
    output = trainer.run("Ray Train", submit_args=f"--master local[2] --jars {JAR}")
    [(steps, loss, states)] = re.findall(r"^(\d+) steps, loss (\S+), (\d) states", output, re.MULTILINE)
    assert (int(steps), int(states)) == (60, 2)
    assert float(loss) < 0.1


@pytest.mark.long
def test_hugging_face_trainer(trainer):
    trainer.needs("transformers")
    output = trainer.run("Hugging Face Trainer")
    [(steps, weight)] = re.findall(r"^(\d+) steps, \[\[(.*)\]\]$", output, re.MULTILINE)
    assert int(steps) == 60
    assert_is_the_line(weight)
    # After 25 and 50 steps; newer Trainers save after the last one, too.
    assert trainer.checkpoints() in (2, 3)


@pytest.mark.long
def test_a_trainer_resumes_in_the_middle_of_an_epoch(trainer):
    # Earlier ones cannot load the optimizer of rank 1 on a CPU.
    pytest.importorskip("transformers", "5.0", reason="no transformers (make test-trainers)")
    output = trainer.output(trainer.start(sys.executable, PROGRAMS / "hf_program.py"))
    assert "\n1500 rows, 1500 rows, 60 steps, rows by times: {3: 1000}\n" in output
    assert "[rank 1] refused: eval_dataset: ranks may have different numbers of batches" in output


def test_a_trainer_evaluates_on_one_rank(dataset, tmp_path):
    transformers = pytest.importorskip("transformers", reason="no transformers (make test-trainers)")
    import torch

    class Model(torch.nn.Module):
        ids: list[int] = []

        def forward(self, x):
            self.ids += x.tolist()
            return {"loss": x.float().mean(), "x": x}

    arguments = transformers.TrainingArguments(
        tmp_path, use_cpu=True, report_to="none", disable_tqdm=True, label_names=["x"]
    )
    trainer = type("Trainer", (spark_supplier.hf.TrainerMixin, transformers.Trainer), {})(
        Model(), arguments, eval_dataset={"numbers": dataset([6])}
    )
    assert trainer.evaluate()["eval_numbers_loss"] > 0
    assert Model.ids == list(range(6))


@pytest.mark.long
def test_xgboost(trainer):
    trainer.needs("xgboost")
    output = trainer.run("XGBoost")
    [(rows, prediction)] = re.findall(r"^(\d+) rows on rank 0, prediction (\S+)$", output, re.MULTILINE)
    assert int(rows) == 500 and float(prediction) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("uneven", ["pad", "drop"])
def test_xgboost_refuses_rows_that_repeat_or_are_missing(uneven):
    data = Dataset(columns=["x"], batch_size=4, uneven=uneven)
    with pytest.raises(spark_supplier.SupplyError, match=f"uneven='{uneven}': XGBoost needs each row once"):
        spark_supplier.xgboost.matrix(data, "x")


@pytest.mark.long
def test_xgboost_with_ranks_of_every_kind(trainer):
    pytest.importorskip("xgboost", reason="no xgboost (make test-trainers)")
    output = trainer.output(trainer.start(sys.executable, PROGRAMS / "xgboost_program.py"))
    found = re.findall(r"^rows (.*), weights 500.0, models 1, error (.*)$", output, re.MULTILINE)
    assert [rows for rows, _ in found] == ["(500, 500)", "(1000, 0)"]
    assert all(float(error) < 0.1 for _, error in found)
    assert "refused: rank 1 on" in output and "ValueError: no model" in output


@pytest.mark.long
@pytest.mark.parametrize("section, module", [("scikit-learn", "sklearn"), ("Keras", "keras")])
def test_a_line(trainer, monkeypatch, section, module):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    trainer.environment["KERAS_BACKEND"] = "torch"
    trainer.needs(module, "3.0" if module == "keras" else None)
    assert_is_the_line(trainer.run(section).splitlines()[-1])


@pytest.mark.parametrize("section, module", [("JAX", "jax"), ("TensorFlow", "tensorflow")])
def test_dlpack(trainer, section, module):
    trainer.needs(module)
    assert_is_the_line(trainer.run(section).splitlines()[-1])


@pytest.mark.long
def test_tensorboard(trainer):
    pytest.importorskip("tensorboard", reason="no tensorboard (make test-trainers)")
    trainer.output(trainer.start(sys.executable, EXAMPLES / "with_tensorboard.py"))
    events = trainer.output(trainer.start(sys.executable, "-c", BOARD))
    assert events.splitlines()[-1] == "60 losses, 3 of each kind of seconds"


@pytest.mark.long
def test_mlflow(trainer):
    pytest.importorskip("mlflow", reason="no mlflow (make test-trainers)")
    trainer.output(trainer.start(sys.executable, EXAMPLES / "with_mlflow.py"))
    found = trainer.output(trainer.start(sys.executable, "-c", TRACKED))
    assert re.search(r"^60 losses, 6 times of ranks, .*[Bb]ound", found.splitlines()[-1])
