"""Five programs of the pages, and what each prints."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[3]

# After the page's first lines, which make the session and the frame. The page names a script, and has none.
SCRIPT = """
import sys
import spark_supplier
import torch

rows = torch.tensor(sum(len(batch["label"]) for batch in spark_supplier.data()))
torch.distributed.all_reduce(rows)
print(rows.item(), "rows", *sys.argv[1:])
"""
RUN_SCRIPT = """
from spark_supplier import Rows
rows = Rows(df, columns=["features", "label"], batch_size=64, uneven="keep")
Supplier(ranks=2).run("train.py", rows, "some", rate=0.1)
"""


class Program(NamedTuple):
    """printed: a regular expression that its output has if all went well."""

    name: str
    text: str
    printed: str

    def is_right(self, output):
        return re.search(self.printed, output, re.MULTILINE) is not None


def programs():
    [readme] = _blocks("README.md")
    first, several = _blocks("docs/TUTORIAL.md")
    [predict] = _blocks("docs/RESULTS.md")
    pipeline = next(text for text in _blocks("docs/SPARK-ML.md") if "TorchEstimator(" in text)
    session = re.sub(r"^def train.*?(?=^\S)|^state = .*", "", first, flags=re.MULTILINE | re.DOTALL)
    return [
        Program("README", readme, r"^(2\.9|3\.0)\d*\s*$"),
        Program(
            "tutorial",
            first + several, r"tensor\(\[\[[\s\S]*(epoch 0: loss[\s\S]*){2}",
        ),
        Program("script", session + RUN_SCRIPT, "10000 rows some --rate 0.1"),
        Program("predictions", first + predict, r"\|\s*10000\|"),
        Program(
            "estimator",
            pipeline, r"'validation_loss': [\s\S]*^0\.[89]\d*$[\s\S]*\|\s*probability\|",
        ),
    ]  # fmt: skip


def _blocks(page):
    """Without the masters: the session brings its own."""
    found = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [re.sub(r'\.master\("[^"]*"\)', "", text) for text in found]
