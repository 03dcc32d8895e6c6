"""Every Python example of docs/PYTHON.md runs as a rank, fed by a task of the test."""

import re
import shutil
import subprocess
import sys

import pyarrow
import pytest

from layout import ROOT
from task import Task, wait_until
from values import batch

pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")

DOCUMENT = ROOT / "docs" / "PYTHON.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
# The function that the examples leave to the reader.
TRAIN = "def train(data, label):\n    assert data.shape[1:] == (2,) and len(data) == len(label) > 0\n"


def test_the_document_has_examples():
    assert len(EXAMPLES) == DOCUMENT.read_text().count("```python") >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example(files, example):
    conf = files.folder / "conf"
    conf.mkdir(mode=0o700)
    for name in ("mapped-files.conf", "named-pipes.conf"):
        shutil.copy(files.folder / name, conf)
    rank = subprocess.Popen(
        [sys.executable, "-c", TRAIN + example], cwd=files.folder, env={"SUPPLY_TIMEOUT": "30", "LOCAL_RANK": "0"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        wait_until("the pair", lambda: rank.poll() is not None or files.is_open())
        task = Task(*files.paths)
        data = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(range(128), "float32"), 2)
        epochs = 2 if "range(2)" in example else 1
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
