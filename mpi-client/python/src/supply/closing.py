"""The context manager of a Supply and of a SupplyDataset."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import TypeVar

_Self = TypeVar("_Self", bound="Closing")


class Closing:
    """Leaving the `with` block closes. If an exception leaves it, abort() passes the exception's text to Spark."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def abort(self, reason: str) -> None: ...

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort(_text(error))
            return
        try:
            self.close()
        except KeyboardInterrupt as interruption:
            # An interrupted close() leaves the pair open, and nothing else closes it.
            self.abort(_text(interruption))
            raise


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
