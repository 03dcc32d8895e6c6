"""One iteration whose batches go to the workers of a DataLoader."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
import torch

from supply.batch import Batch, Jagged, Values, copied
from supply.equal_steps import Step
from supply.errors import SupplyError


class WorkerBatches:
    """Makes batches in the order of their numbers, each when a worker asks for it. Any thread may call it."""

    def __init__(self, steps: Iterator[Step], is_counted: bool) -> None:
        """steps: one thread at a time advances them. is_counted: whether handed_out() tells what the loop has."""
        self._steps: Iterator[Step] | None = steps
        self._changed = threading.Condition()
        self._is_reading = False
        self._made = 0
        self._error: BaseException | None = None
        self._waiting: dict[int, bytes] = {}
        # The steps that the loop may not have yet, without their batches. Only if counted.
        self._not_handed_out: dict[int, Step] = {}
        self._handed_out = 0
        self.is_counted = is_counted
        self.has_ended = False

    def take(self, number: int) -> bytes:
        """Waits for the batch of this number, from 0, as for Supply.next_block(). Returns the message with it."""
        with self._changed:
            while number not in self._waiting:
                if self._error is not None:
                    raise self._error
                if self._steps is None:
                    return packed(None)
                if self._is_reading:
                    self._changed.wait()
                else:
                    self._read(self._steps)
            return self._waiting.pop(number)

    def stop(self, reason: str = "the loop has left this epoch") -> None:
        """Drops the batches and the block that the iteration holds. It waits for a call that is reading."""
        with self._changed:
            while self._is_reading:
                self._changed.wait()
            if self._steps is not None:
                self._error = SupplyError(reason)
            self._steps = None
            self._waiting.clear()

    def handed_out(self) -> Step:
        """The loop has got the next batch. Returns its step, without the batch."""
        with self._changed:
            step = self._not_handed_out.pop(self._handed_out)
            self._handed_out += 1
            return step

    def _read(self, steps: Iterator[Step]) -> None:
        """Makes the next batch, without the lock, so that others can take those that are made."""
        self._is_reading = True
        self._changed.release()
        made: tuple[bytes, Step] | None = None
        error: BaseException | None = None
        try:
            made = _next(steps)
        except BaseException as raised:
            error = raised
        self._changed.acquire()
        self._is_reading = False
        if made is None:
            self._error, self._steps, self.has_ended = error, None, error is None
        else:
            self._waiting[self._made] = made[0]
            if self.is_counted:
                self._not_handed_out[self._made] = made[1]
            self._made += 1
        self._changed.notify_all()


def _next(steps: Iterator[Step]) -> tuple[bytes, Step] | None:
    step = next(steps, None)
    if step is None:
        return None
    last = None if step.last is None else copied(step.last)
    return packed(step.batch), Step(Batch(), step.position, last)


def packed(batch: Batch | BaseException | None) -> bytes:
    """A message to a worker: a batch, an error, or None at the end of the epoch."""
    if isinstance(batch, Batch):
        return pickle.dumps({name: _with_arrays(values) for name, values in batch.items()}, protocol=5)
    try:
        return pickle.dumps(batch)
    except Exception:
        return pickle.dumps(SupplyError(f"{type(batch).__name__}: {batch}"))


def unpacked(message: Any) -> Batch | None:
    """The batch of a message, with tensors of its own. Raises its error."""
    if isinstance(message, BaseException):
        raise message
    if message is None:
        return None
    return Batch((name, _with_tensors(values)) for name, values in message.items())


class _BFloat16(NamedTuple):
    """numpy has no such type: the same bits as integers."""

    bits: numpy.ndarray


def _with_arrays(values: Values) -> Any:
    """numpy arrays: PyTorch would move each tensor into a shared file of its own."""
    if isinstance(values, list):
        return values
    if isinstance(values, torch.Tensor) and values.dtype == torch.bfloat16:
        return _BFloat16(values.view(torch.int16).numpy())
    return Jagged(*(part.numpy() for part in values)) if isinstance(values, Jagged) else values.numpy()


def _with_tensors(values: Any) -> Values:
    if isinstance(values, list):
        return values
    if isinstance(values, _BFloat16):
        return torch.from_numpy(values.bits).view(torch.bfloat16)
    return Jagged(*map(torch.from_numpy, values)) if isinstance(values, Jagged) else torch.from_numpy(values)
