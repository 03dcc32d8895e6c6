"""How a Reader and a Dataset end: as context managers, and in a forked child, which leaves them to its parent."""

from __future__ import annotations

import os
import weakref
from abc import abstractmethod
from types import TracebackType
from typing import TypeVar

from spark_supplier import _core
from spark_supplier.errors import SupplyError

_handles: weakref.WeakSet[_core.Pair | _core.Result] = weakref.WeakSet()


def leave_to_parent(handle: _core.Pair | _core.Result) -> None:
    """Children that this process forks close their copies of the handle's descriptors.

    Otherwise these would make the rank look alive to Spark after it died.
    """
    _handles.add(handle)


def _abandon_in_child() -> None:
    for handle in _handles:
        handle.abandon_in_child()


os.register_at_fork(after_in_child=_abandon_in_child)


_Self = TypeVar("_Self", bound="Closing")


def in_utf8(reason: str) -> str:
    """For Spark. The text of an exception may have what UTF-8 cannot have, as of a file name in another encoding."""
    return reason.encode(errors="backslashreplace").decode()


class Closing:
    """Leaving the `with` block closes. If an exception leaves it, abort() passes the exception's text to Spark."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def abort(self, reason: str) -> None: ...

    _is_closed = False

    @property
    def closed(self) -> bool:
        """Whether it is closed, and of no more use."""
        return self._is_closed

    def __enter__(self: _Self) -> _Self:
        if self.closed:
            raise SupplyError(f"this {type(self).__name__} is closed: open another one for another `with` block")
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
