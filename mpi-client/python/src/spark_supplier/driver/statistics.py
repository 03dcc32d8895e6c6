"""Where the time of a call went, and what its program reported."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_supplier.node.messages import PLACES, Measured
from spark_supplier.times import EpochStatistics

# What ranks do with their time, as EpochStatistics has it.
_WAITS = ("waiting_for_spark", "waiting_for_ranks")
KINDS = (*_WAITS, "batching", "program", "copying")
# A part of a sentence that says less is left out.
_LEAST_PERCENT = 1


@dataclass(frozen=True)
class RunStatistics:
    """How a call of Supplier.run spent its time. Each list makes a table: spark.createDataFrame(statistics.ranks).

    Attributes
    ----------
    sentence : str or None
        Says which side was the slower one, as "Spark-bound: ranks waited 71 % of the time for rows; Spark spent 55 % in
        its scan, 10 % in the copy". None: no rank has had a row.
    ranks : list of dict
        For each rank and epoch "rank" and the fields of EpochStatistics (spark_supplier.torch): epoch, rows, and the
        seconds waiting_for_spark, waiting_for_ranks, batching, program and copying.
    tasks : list of dict
        For each task of Spark that has not failed "data" ("df" or "validation"), "rank", "host", "rows", "bytes",
        "seconds" in all, and the seconds "scan" (computing rows, measured by samples), "copy" (writing blocks) and
        "waiting_for_rank" (until the rank had released a part of its buffer).
    history : list of dict
        For each data.report() of rank 0 "epoch", "batch", "seconds" since the call began, and the numbers by their
        names.
    """

    sentence: str | None = None
    ranks: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


class Measurements:
    """What the ranks of a call have measured. Any thread may ask."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], EpochStatistics] = {}
        # Of all rows.
        self._seconds = dict.fromkeys(KINDS, 0.0)
        self._history: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def take(self, measured: Measured) -> list[dict[str, Any]]:
        """Returns what has been reported with it."""
        with self._lock:
            for row in measured.statistics:
                before = self._rows.get((measured.rank, row.epoch))
                self._rows[measured.rank, row.epoch] = row
                for kind in KINDS:
                    self._seconds[kind] += getattr(row, kind) - (getattr(before, kind) if before else 0)
            reports = [report.row() for report in measured.reports]
            self._history += reports
            return reports

    def newest(self) -> str:
        """The numbers that were reported last, and the slower side so far, for the bar."""
        with self._lock:
            last = self._history[-1] if self._history else {}
            said = sentence(self._seconds, [])
        numbers = [f"{name} {value:.4g}" for name, value in last.items() if name not in PLACES]
        return ", ".join(numbers + ([said] if said else []))

    def statistics(self, tasks: list[dict[str, Any]]) -> RunStatistics:
        with self._lock:
            ranks = [{"rank": rank, **dataclasses.asdict(row)} for (rank, _), row in sorted(self._rows.items())]
            return RunStatistics(sentence(self._seconds, tasks), ranks, tasks, list(self._history))


def sentence(seconds: Mapping[str, float], tasks: Sequence[Mapping[str, Any]]) -> str | None:
    """Says which side was the slower one. seconds: of all ranks, by KINDS. tasks: as of RunStatistics.

    None: there are no seconds.
    """
    total = sum(seconds.values())
    if total <= 0:
        return None
    percent = {kind: round(100 * value / total) for kind, value in seconds.items()}
    for_spark, for_ranks = (seconds[kind] for kind in _WAITS)
    own = total - for_spark - for_ranks
    if for_spark >= max(for_ranks, own):
        said = f"Spark-bound: ranks waited {percent['waiting_for_spark']} % of the time for rows"
        return said + _of_tasks(tasks)
    if for_ranks >= own:
        said = f"Bound by the slowest rank: ranks waited {percent['waiting_for_ranks']} % of the time for each other"
    else:
        parts = [f"the ranks' own code took {percent['program']} % of the time"]
        named = (("batching", "making batches"), ("copying", "copies to the device"))
        parts += [f"{name} {percent[kind]} %" for kind, name in named if percent[kind] >= _LEAST_PERCENT]
        said = f"Rank-bound: {', '.join(parts)}"
    return f"{said}; ranks waited {percent['waiting_for_spark']} % of it for rows"


def _of_tasks(tasks: Sequence[Mapping[str, Any]]) -> str:
    total = sum(task["seconds"] for task in tasks)
    if total <= 0:
        return ""
    scan, copy = (round(100 * sum(task[part] for task in tasks) / total) for part in ("scan", "copy"))
    return f"; Spark spent {scan} % in its scan, {copy} % in the copy"
