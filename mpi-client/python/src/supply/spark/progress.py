"""The progress of a run: a bar in a terminal or a notebook, else a line now and then."""

from __future__ import annotations

import importlib.util
import logging
import sys
import time
from typing import Any

import tqdm

from supply.ranks.messages import Progress

_LINE_SECONDS = 10
_log = logging.getLogger("supply.spark")


class ProgressBar:
    """Shows the progress of rank 0, which stands for all ranks."""

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs
        self._lines = not (sys.stderr.isatty() or _in_notebook())
        self._bar = _bar_class()(unit=" elements", desc="rank 0", disable=self._lines)
        self._next_line = time.monotonic() + _LINE_SECONDS

    def show(self, progress: Progress) -> None:
        epoch = f"epoch {min(progress.epoch + 1, self._epochs)} of {self._epochs}"
        expected = progress.per_epoch and progress.per_epoch * self._epochs
        self._bar.total = expected
        self._bar.set_description(f"rank 0, {epoch}", refresh=False)
        self._bar.update(progress.elements - self._bar.n)
        if self._lines and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            of = f" of {expected}" if expected else ""
            _log.info("rank 0: %s, %d%s elements", epoch, progress.elements, of)

    def print(self, line: str, stream: str) -> None:
        """Prints a line beside the bar. stream: "stdout" or "stderr"."""
        self._bar.write(line, file=sys.stdout if stream == "stdout" else sys.stderr)

    def close(self) -> None:
        self._bar.close()


def _in_notebook() -> bool:
    """PySpark imports ipykernel in any process."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _bar_class() -> Any:
    """The widget of notebooks needs ipywidgets. Without it, tqdm's text serves there, too."""
    if _in_notebook() and importlib.util.find_spec("ipywidgets"):
        return importlib.import_module("tqdm.notebook").tqdm
    return tqdm.tqdm
