"""The progress of a run: a bar in a terminal or a notebook, else a line now and then."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import tqdm

from spark_supplier.node.messages import Progress

_LINE_SECONDS = 10
_SHOWN_WAIT_SECONDS = 5
_BLOCKED_SECONDS = 0.5
_LOGGED_WAIT_SECONDS = 60
# A log without a configuration shows warnings only.
_VERY_LONG_SECONDS = 600
_POLL_SECONDS = 0.5
_log = logging.getLogger("spark_supplier")


class Printer:
    """Prints lines of ranks, beside a bar if there is one. A terminal may be paused, and then it takes no text."""

    def __init__(self) -> None:
        # When each thread has begun to print.
        self._printing: dict[int, float] = {}
        self._bar = _bar_class()

    def print(self, line: str, stream: str) -> None:
        """stream: "stdout" or "stderr". Waits as long as that takes no text."""
        thread = threading.get_ident()
        self._printing[thread] = time.monotonic()
        try:
            file = sys.stdout if stream == "stdout" else sys.stderr
            # A service may have none, or a closed one.
            with contextlib.suppress(AttributeError, ValueError):
                self._bar.write(printable(line, file), file=file)
        finally:
            del self._printing[thread]

    @property
    def is_blocked(self) -> bool:
        """Whether stdout or stderr takes no text: a paused terminal, or a program that does not read."""
        now = time.monotonic()
        return any(now - begun > _BLOCKED_SECONDS for begun in list(self._printing.values()))


class ProgressBar:
    """Shows the progress of rank 0, which stands for all ranks, and long waits, on a thread of its own.

    waits: as of RankWatch. numbers: what else the bar shows. is_quiet: the log has lines in place of the bar.
    """

    def __init__(self, epochs: int, is_quiet: bool = False) -> None:
        self._epochs = epochs
        self.waits: Callable[[float], tuple[float, str]] = lambda _: (0, "")
        self.numbers: Callable[[], str] = lambda: ""
        self._progress: Progress | None = None
        self._lines = is_quiet or _shows_lines()
        self._bar = _bar_class()(unit=" rows", desc="rank 0", disable=self._lines)
        self._next_waits = time.monotonic()
        self._next_line = self._next_waits + _LINE_SECONDS
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supply: progress", daemon=True)
        self._thread.start()

    def show(self, progress: Progress) -> None:
        """Returns at once."""
        self._progress = progress

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        if self._progress is not None:
            self._bar.set_postfix_str(self.numbers(), refresh=False)
            self._draw(self._progress)
        self._bar.close()

    def _run(self) -> None:
        shown = None
        while not self._ended.wait(_POLL_SECONDS):
            text = "; ".join(filter(None, (self.numbers(), self.waits(_SHOWN_WAIT_SECONDS)[1])))
            if (progress := self._progress) is not None and (progress, text) != shown:
                self._bar.set_postfix_str(text, refresh=False)
                self._draw(progress)
                shown = progress, text
            self._log_waits()

    def _log_waits(self) -> None:
        if (now := time.monotonic()) < self._next_waits:
            return
        longest, text = self.waits(_LOGGED_WAIT_SECONDS)
        if text:
            self._next_waits = now + _LOGGED_WAIT_SECONDS
            level = logging.WARNING if longest >= _VERY_LONG_SECONDS else logging.INFO
            _log.log(level, "for %.0f s: %s", longest, text)

    def _draw(self, progress: Progress) -> None:
        epoch = f"epoch {min(progress.epoch + 1, self._epochs)} of {self._epochs}"
        expected = progress.per_epoch and progress.per_epoch * self._epochs
        self._bar.total = expected
        self._bar.set_description(f"rank 0, {epoch}", refresh=False)
        self._bar.update(progress.elements - self._bar.n)
        self._bar.refresh()
        if self._lines and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            of = f" of {expected}" if expected else ""
            numbers = self.numbers()
            _log.info("rank 0: %s, %d%s rows%s", epoch, progress.elements, of, f" ({numbers})" if numbers else "")


def printable(text: str, file: Any) -> str:
    """With escapes for what the file's encoding does not have."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _shows_lines() -> bool:
    # stderr may be None, closed, or have write() alone.
    with contextlib.suppress(AttributeError, ValueError):
        return not (sys.stderr.isatty() or _in_notebook())
    return True


def _in_notebook() -> bool:
    """PySpark imports ipykernel in any process."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _bar_class() -> Any:
    """The widget of notebooks needs ipywidgets. Without it, tqdm's text serves there, too."""
    if _in_notebook() and importlib.util.find_spec("ipywidgets"):
        return importlib.import_module("tqdm.notebook").tqdm
    return tqdm.tqdm
