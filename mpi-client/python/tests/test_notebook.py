"""Supplier.run in a notebook: the programs of the page, Interrupt, and a kernel that is killed."""

import contextlib
import re
import signal
import sys

import pytest

from layout import ROOT
from supplier_session import shared_memory

pytest.importorskip("pyspark")
jupyter_client = pytest.importorskip("jupyter_client")

LIMIT_SECONDS = 240
ENDLESS = """
from pyspark.sql import SparkSession
import spark_supplier
from spark_supplier import Rows, Supplier

def train(data):
    import time
    for batch in data:
        print("trains")
        time.sleep(1000)

spark = SparkSession.builder.master("local[3]").config("spark.jars", spark_supplier.jars()).getOrCreate()
Supplier(ranks=2, folder={!r}).run(train, Rows(spark.range(0, 1000, 1, 4), columns=["id"], batch_size=1))
"""

EXPORTS = """
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
set_meter_provider(MeterProvider([reader]))

def points():
    [resource] = reader.get_metrics_data().resource_metrics
    return resource.scope_metrics[0].metrics[0].data.data_points

"""


class Notebook:
    """A kernel of this Python, as a notebook uses it."""

    def __init__(self, folder):
        self.manager = jupyter_client.KernelManager()
        self.manager.kernel_spec.argv[0] = sys.executable
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT_SECONDS)

    def start(self, code):
        self.cell = self.client.execute(code)

    def read(self, until=None):
        """The output of the cell, until it has this text, or to the cell's end; and the name of the error or None."""
        text, error = "", None
        while until is None or until not in text:
            message = self.client.get_iopub_msg(timeout=LIMIT_SECONDS)
            if message["parent_header"].get("msg_id") != self.cell:
                continue
            kind, content = message["msg_type"], message["content"]
            text += content.get("text", "") if kind == "stream" else ""
            error = content["ename"] if kind == "error" else error
            if kind == "status" and content["execution_state"] == "idle":
                break
        return text, error

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def notebook(tmp_path):
    with contextlib.closing(Notebook(tmp_path)) as opened:
        yield opened


def programs(page):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.long
def test_the_programs_of_the_pages_run_in_cells(notebook):
    train, several = programs("TUTORIAL.md")
    [predict] = programs("RESULTS.md")
    [of_mpi] = programs("C-AND-MPI.md")
    measured, shown, metered = programs("SLOW.md")
    # The first one is a part of an example, and the last one is for ranks that something else starts.
    _, resume, _ = programs("RESTARTS.md")
    assert train in (ROOT / "mpi-client" / "python" / "examples" / "one_call.py").read_text()
    notebook.start(train)
    text, error = notebook.read()
    assert error is None, text
    losses = [float(loss) for loss in re.findall(r"\[rank 0\] epoch \d: loss ([0-9.]+)", text)]
    assert len(losses) == 5 and losses[-1] < losses[0] / 2
    assert "tensor([[" in text
    notebook.start(several)
    text, error = notebook.read()
    assert error is None, text
    assert text.count("[rank 0] epoch 0: loss") == 2
    notebook.start(predict)
    text, error = notebook.read()
    assert error is None, text
    # Spark shows a mean error below 0.001 as 5.0E-4.
    [(count, mean_error)] = re.findall(r"\|\s*(\d+)\|\s*([0-9.E-]+)\|", text)
    assert int(count) == 10000 and float(mean_error) < 0.05
    for program, end in ((of_mpi, "10000"), (resume, str(10000 - 2 * 64))):
        notebook.start(program)
        text, error = notebook.read()
        assert error is None, text
        assert text.strip().endswith(end)
    notebook.start(measured)
    text, error = notebook.read()
    assert error is None, text
    assert re.search(r"[a-z]+-bound: |Bound by the slowest rank: ", text) and "waiting_for_spark" in text
    assert re.search(r"{'mean': [0-9.]+, 'epoch': 1, 'batch': 79, 'seconds': [0-9.]+}\s*$", text)
    notebook.start(shown + "print(len(reports))")
    text, error = notebook.read()
    assert error is None, text
    assert int(text.split()[-1]) == 2 * 79
    notebook.start(EXPORTS + metered + "print([point.attributes['epoch'] for point in points()])")
    text, error = notebook.read()
    assert error is None, text
    assert text.rstrip().endswith("[0, 1]")


@pytest.mark.long
def test_the_program_of_spark_ml_runs_in_a_cell(tmp_path, monkeypatch):
    """Two ranks with validation data need five task slots."""
    program = next(program for program in programs("SPARK-ML.md") if "TorchEstimator(" in program)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master local[5] pyspark-shell")
    with contextlib.closing(Notebook(tmp_path)) as notebook:
        notebook.start(program)
        text, error = notebook.read()
    assert error is None, text
    # Spark may warn in between.
    [accuracy] = re.findall(r"'validation_loss': [0-9.]+}[\s\S]*^(0\.\d+|1\.0)$", text, re.MULTILINE)
    assert float(accuracy) > 0.8 and "|probability|" in text.replace(" ", "")


def test_the_program_of_the_readme_runs_in_a_cell(tmp_path, monkeypatch):
    """As it stands."""
    [program] = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master local[5] pyspark-shell")
    with contextlib.closing(Notebook(tmp_path)) as notebook:
        notebook.start(program)
        text, error = notebook.read()
    assert error is None, text
    # The data has y = 3 x. The progress bar may end without a new line.
    [slope] = re.findall(r"([\d.]+)\s*$", text)
    assert 2.8 < float(slope) < 3.2


@pytest.mark.long
def test_interrupt_ends_both_sides(notebook):
    with shared_memory() as folder:
        notebook.start(ENDLESS.format(folder))
        notebook.read(until="trains")
        notebook.manager.interrupt_kernel()
        assert notebook.read()[1] == "KeyboardInterrupt"


@pytest.mark.long
def test_nothing_is_left_of_a_killed_kernel(notebook):
    with shared_memory() as folder:
        notebook.start(ENDLESS.format(folder))
        notebook.read(until="trains")
        notebook.manager.signal_kernel(signal.SIGKILL)
