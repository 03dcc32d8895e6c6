"""What a forked child leaves to its parent."""

from __future__ import annotations

import os
import weakref

from supply import _core

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
