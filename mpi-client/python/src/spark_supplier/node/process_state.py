"""What a function may change in the process of a rank, and the next call of that rank must not see."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

# What to call of PyTorch for the value, and with a value.
_TORCH = (
    ("get_default_dtype", "set_default_dtype"),
    ("is_grad_enabled", "set_grad_enabled"),
    ("get_num_threads", "set_num_threads"),
    ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
    ("get_float32_matmul_precision", "set_float32_matmul_precision"),
)


class ProcessState:
    """As it is now: the environment, sys.argv, sys.path, the standard streams, the working directory, handlers of
    signals, and PyTorch's default type, gradient mode, threads, precision and determinism.
    """

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._argv, self._path = list(sys.argv), list(sys.path)
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._folder = os.getcwd()
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._torch = [(write, read()) for read, write in _of_torch()]

    def restore(self) -> None:
        """Raises OSError if the working directory is gone."""
        for name in os.environ.keys() - self._environment.keys():
            del os.environ[name]
        for name, value in self._environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
        sys.argv, sys.path[:] = list(self._argv), self._path
        sys.stdin, sys.stdout, sys.stderr = self._streams
        os.chdir(self._folder)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)
        dump_on_signal()
        for write, value in self._torch:
            write(value)
        _renew_torch()
        # Random numbers are new ones, as in a process that begins.
        random.seed()
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed()


def _of_torch() -> Iterator[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Pairs of functions."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for read, write in _TORCH:
        yield getattr(torch, read), getattr(torch, write)
    for name in ("benchmark", "deterministic", "allow_tf32"):
        yield partial(getattr, torch.backends.cudnn, name), partial(setattr, torch.backends.cudnn, name)


def _renew_torch() -> None:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if hasattr(torch, "set_default_device"):
        torch.set_default_device(None)
    # Also those of devices.
    torch.seed()


def dump_on_signal() -> None:
    """SIGUSR1 prints where all threads are."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def flush_output() -> None:
    """Also what libraries in C have printed."""
    for stream in (sys.stdout, sys.stderr):
        # The function may have closed it.
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def free_memory() -> None:
    """Of the last call: of circles of objects, and of devices."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
