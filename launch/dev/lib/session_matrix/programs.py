"""Five programs of README.md and docs/ONE-CALL.md, and what each prints."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[4]

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
options = {"columns": ["features", "label"], "batch_size": 64, "uneven": "keep"}
Supplier(ranks=2).run("train.py", df, args=("some",), kwargs={"rate": 0.1}, **options)
"""
SAVE = """
from pyspark.ml import PipelineModel

fitted.write().overwrite().save("saved-pipeline")
PipelineModel.load("saved-pipeline").transform(table).selectExpr("count(prediction) as rows").show()
"""


class Program(NamedTuple):
    """printed: a regular expression that its output has if all went well."""

    name: str
    text: str
    printed: str

    def is_right(self, output):
        return re.search(self.printed, output) is not None


def programs():
    [readme] = _blocks("README.md")
    first, several, predict, _, pipeline, *_ = _blocks("docs/ONE-CALL.md")
    session = re.sub(r"^def train.*?(?=^\S)|^state = .*", "", first, flags=re.MULTILINE | re.DOTALL)
    return [
        Program("[README](../README.md)'s program", readme, r"(?m)^(2\.9|3\.0)\d*\s*$"),
        Program(
            "[one call](ONE-CALL.md), and [several](ONE-CALL.md#several-calls) of ranks that stay",
            first + several, r"tensor\(\[\[[\s\S]*(epoch 0: loss[\s\S]*){2}",
        ),
        Program("a script with `data()`", session + RUN_SCRIPT, "10000 rows some --rate 0.1"),
        Program("[predictions back](ONE-CALL.md#predictions-back)", first + predict, r"\|\s*10000\|"),
        Program(
            "[`TorchEstimator`](ONE-CALL.md#in-pipelines-of-spark-ml): fit, transform, save, load",
            session + pipeline + SAVE, r"'validation_loss': 0\.0[\s\S]*prediction\|[\s\S]*\|\s*10000\|",
        ),
    ]  # fmt: skip


def _blocks(page):
    """Without the masters: the session brings its own."""
    found = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [re.sub(r'\.master\("[^"]*"\)', "", text) for text in found]
