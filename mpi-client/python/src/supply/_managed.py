"""What every context manager of this package does at its end."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import TypeVar

_Self = TypeVar("_Self", bound="Managed")


class Managed:
    """Left without an exception it closes, with one it aborts with the exception's text."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def abort(self, reason: str) -> None: ...

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort(f"{type(error).__name__}: {error}")
