"""What a rank saves for a restart, and finds after one: docs/design/restarts.md."""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from spark_supplier.errors import SupplyError
from spark_supplier.node.hub import GONE, LAST, Connection, pieces_of, read, read_piece, shut_down
from spark_supplier.node.job import NO_LIMIT_SECONDS
from spark_supplier.node.messages import Attempt, Saved


def compact(value: Any) -> Any:
    """A tensor that is a slice as a tensor of its own: pickle would take all that its storage has. Else the value."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
        return value
    storage = value.untyped_storage() if hasattr(value, "untyped_storage") else value.storage()
    if value.numel() * value.element_size() >= storage.nbytes():
        return value
    own = value.detach().clone()
    is_parameter = isinstance(value, torch.nn.Parameter)
    return torch.nn.Parameter(own, value.requires_grad) if is_parameter else own.requires_grad_(value.requires_grad)


class _Compact:
    """The pickle module for torch.save()."""

    __name__ = pickle.__name__

    class Pickler(pickle.Pickler):
        def reducer_override(self, value: Any) -> Any:
            own = compact(value)
            return NotImplemented if own is value else own.__reduce_ex__(2)


def dumped(state: Any) -> io.BytesIO:
    content = io.BytesIO()
    torch.save(state, content, pickle_module=_Compact)
    return content


def loaded(content: io.BytesIO) -> Any:
    return torch.load(content, map_location="cpu", weights_only=False)


_SAVE, _LOAD = 0, 1
_CALL = struct.Struct("!BqI")
_TEXT = struct.Struct("!H")


class RankCheckpoints:
    """connect: a connection to the hub for one file. tell: sends the driver a message."""

    def __init__(
        self, attempt: Attempt, rank: int, connect: Callable[[], Connection], tell: Callable[[Any], object]
    ) -> None:
        self.attempt = attempt
        self.rank = rank
        self._connect = connect
        self._tell = tell
        self._next = attempt.next
        self._at = time.monotonic()
        # All ranks make it here, in the order of their calls. Between two, a program may compute as long as it likes.
        limit = timedelta(seconds=NO_LIMIT_SECONDS)
        # The program may destroy it, and then its store must go, too.
        group = None if attempt.every is None else torch.distributed.new_group(timeout=limit, backend="gloo")
        self._group_of = (lambda: None) if group is None else weakref.ref(group)

    @property
    def can_save(self) -> bool:
        """Whether the Supplier has checkpoints=."""
        return self._next is not None

    def load(self, rank: int | None = None) -> Any:
        """What that rank saved, by default this one, or rank 0 if this one saved nothing. None: there is nothing."""
        if self.attempt.loaded is None or not self.attempt.holders:
            return None
        wanted = self.rank if rank is None else rank
        if wanted not in self.attempt.holders:
            if rank is not None or 0 not in self.attempt.holders:
                return None
            wanted = 0
        with self._file(_LOAD, self.attempt.loaded, wanted) as connection:
            self._check(connection, "load")
            content = io.BytesIO()
            flag = None
            while flag != LAST:
                flag, piece = read_piece(connection)
                if flag == GONE:
                    raise _refused("load", piece)
                content.write(piece)
        content.seek(0)
        return loaded(content)

    def save(self, state: Any, position: Callable[[], str | None]) -> bool:
        """False: none is due. state: also a function that makes it. position: of this rank."""
        if self._next is None:
            raise SupplyError(
                "save(state): the Supplier has no checkpoints=, or the call has results=, which save none"
            )
        if isinstance(state, torch.nn.Module):
            # It is callable, too.
            raise SupplyError("save(state): it is a module: pass its state_dict()")
        if not self._is_due():
            return False
        place = position()
        if place is not None and ":exchange:" in place:
            raise SupplyError(
                "save(state) in the middle of an epoch with shuffle='all', where the rows of a rank are with "
                "other ranks, too: call it at the end of an epoch"
            )
        if callable(state):
            state = state()
        number, self._next = self._next, self._next + 1
        self._keep(number, state, place)
        self._at = time.monotonic()
        return True

    def _is_due(self) -> bool:
        """As rank 0 says, so that all ranks save at the same step."""
        if self.attempt.every is None:
            return True
        group = self._group_of()
        if group is None:
            raise SupplyError(
                "save(state): Checkpoints(every=...) needs the ranks' group, and the program has destroyed it: leave "
                "every= out, or destroy_process_group()"
            )
        is_due = torch.tensor([int(time.monotonic() - self._at >= self.attempt.every)])
        torch.distributed.broadcast(is_due, 0, group=group)
        return bool(is_due.item())

    def _keep(self, number: int, state: Any, position: str | None) -> None:
        if state is not None:
            self._send(number, state)
        self._tell(Saved(self.rank, number, position, state is not None))

    def _send(self, number: int, state: Any) -> None:
        with self._file(_SAVE, number, self.rank) as connection:
            for head, piece in pieces_of(dumped(state).getbuffer()):
                connection.sendall(head)
                connection.sendall(piece)
            self._check(connection, "save")

    @contextlib.contextmanager
    def _file(self, verb: int, number: int, rank: int) -> Any:
        what = "save" if verb == _SAVE else "load"
        try:
            connection = self._connect()
            try:
                connection.sendall(_CALL.pack(verb, number, rank))
                yield connection
            finally:
                shut_down(connection)
                connection.close()
        except (OSError, EOFError) as error:
            raise SupplyError(
                f"cannot {what} checkpoint {number}: the driver has ended the connection ({error})"
            ) from error

    @staticmethod
    def _check(connection: Connection, what: str) -> None:
        if read(connection, 1)[0]:
            (size,) = _TEXT.unpack(read(connection, _TEXT.size))
            raise _refused(what, read(connection, size))


def _refused(what: str, reason: bytearray) -> SupplyError:
    return SupplyError(f"the driver cannot {what} the checkpoint: {reason.decode()}")
