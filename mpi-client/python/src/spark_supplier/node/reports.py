"""The numbers that a rank's program reports while it runs."""

from __future__ import annotations

import threading
import time
from typing import Any

from spark_supplier.errors import SupplyError
from spark_supplier.node.messages import PLACES, Reported


class Reports:
    """Keeps numbers until the thread takes them that sends progress. Any thread may use it."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._kept: list[Reported] = []

    def add(self, epoch: int, batch: int, values: dict[str, Any]) -> None:
        """epoch, batch: where the loop is. Raises SupplyError if a value is no number, or its name is taken."""
        if taken := values.keys() & set(PLACES):
            raise SupplyError(f"data.report({min(taken)}=...): the history has that already: take another name")
        numbers = {name: _number(name, value) for name, value in values.items()}
        with self._lock:
            self._kept.append(Reported(epoch, batch, time.monotonic() - self._begun, numbers))

    def take(self) -> list[Reported]:
        """What has come since the last call."""
        with self._lock:
            kept, self._kept = self._kept, []
        return kept


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SupplyError(
            f"data.report({name}=...) is {value!r:.100}, which is no number: give a number, or a tensor or an array "
            "with one"
        ) from error
