"""What keeps the ranks of a node: their output, on its way to the driver, and the files of their calls."""

from __future__ import annotations

import codecs
import fcntl
import os
import select
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO

from spark_supplier.node.hub import Driver
from spark_supplier.node.messages import Begin, CallEnded, CallReady, End, Output
from spark_supplier.node.run_files import RunFiles

# How long children of an ended rank, which may hold its streams, may still print.
_REST_SECONDS = 1
_POLL_SECONDS = 0.05
_BYTES = 1 << 16
_LONGEST_LINE = 1 << 16


class CallFiles:
    """The files of one call after the other. ranks: that have them, on this node."""

    def __init__(self, driver: Driver, output: Driver, ranks: int, host: str) -> None:
        self._driver = driver
        self._output = output
        self._ranks = ranks
        self._host = host
        self._files: RunFiles | None = None

    def take(self, message: Begin | End, flush: Callable[[], None] = lambda: None) -> None:
        """Raises RunError if the files of a call cannot be made. flush: sends the output of a call that ends."""
        if isinstance(message, Begin):
            if self._ranks:
                self._files = message.files
                self._files.begin(self._ranks, self._host)
            self._driver.send(CallReady())
            return
        flush()
        if self._files is not None:
            self._files.remove(message.keep_results)
        self._output.send(CallEnded())


class Forwarder:
    """Sends the driver the lines of these streams, "stdout" and "stderr" of a rank.

    driver: a connection for output alone. If the driver's own output takes no text, it does not read, and at last
    print() waits in the rank.
    """

    def __init__(self, driver: Driver, rank: int, streams: Mapping[str, IO[bytes]]) -> None:
        self._readers = [_Reader(driver, rank, name, stream) for name, stream in streams.items()]
        for reader in self._readers:
            reader.start()

    def flush(self) -> None:
        """The rank waits for a call. Returns when what it has printed is sent, also a line without an end."""
        end = time.monotonic() + _REST_SECONDS
        for reader in self._readers:
            # Children of the rank may print for ever.
            while reader.is_alive() and not reader.flush() and time.monotonic() < end:
                time.sleep(_POLL_SECONDS)

    def finish(self) -> None:
        """The rank has ended. Returns when its lines are sent."""
        end = time.monotonic() + _REST_SECONDS
        for reader in self._readers:
            while reader.is_alive() and (reader.is_sending or time.monotonic() < end):
                reader.join(_POLL_SECONDS)


class _Reader(threading.Thread):
    def __init__(self, driver: Driver, rank: int, name: str, stream: IO[bytes]) -> None:
        super().__init__(name=f"supply: {name} of rank {rank}", daemon=True)
        self._driver = driver
        self._rank = rank
        self._name = name
        self._stream = stream
        self._lines = Lines()
        # Who has it takes what is in the stream, and sends it.
        self._taking = threading.Lock()
        self.is_sending = False

    def run(self) -> None:
        readable = select.poll()
        readable.register(self._stream, select.POLLIN)
        while True:
            readable.poll()
            with self._taking:
                data = os.read(self._stream.fileno(), _BYTES)
                if not data:
                    break
                self._send(self._lines.add(data))
        self._send(self._lines.rest())

    def flush(self) -> bool:
        """False: there is more in the stream."""
        with self._taking:
            if _waiting_bytes(self._stream):
                return False
            self._send(self._lines.rest())
            return True

    def _send(self, lines: Iterator[str]) -> None:
        self.is_sending = True
        for line in lines:
            self._driver.send(Output(self._rank, self._name, line))
        self.is_sending = False


def _waiting_bytes(stream: IO[bytes]) -> int:
    count: int = struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, struct.pack("i", 0)))[0]
    return count


class Lines:
    """The lines of a text that comes in pieces.

    A carriage return begins a line again, as progress bars do. Only its last state counts. A longer line is cut.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def add(self, data: bytes) -> Iterator[str]:
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        yield from map(_last_state, lines)
        if "\r" in self._rest:
            # The last whole state, and the one that begins.
            states, _, begun = self._rest.rpartition("\r")
            self._rest = f"{_last_state(states)}\r{begun}"
        while len(self._rest) > _LONGEST_LINE:
            yield self._rest[:_LONGEST_LINE]
            self._rest = self._rest[_LONGEST_LINE:]

    def rest(self) -> Iterator[str]:
        """What comes after the last end of a line."""
        last, self._rest = _last_state(self._rest + self._decoder.decode(b"", final=True)), ""
        if last:
            yield last


def _last_state(line: str) -> str:
    """What a terminal shows of it, but not the blanks that clear a line."""
    if "\r" not in line:
        return line
    return next((state for state in reversed(line.split("\r")) if state.strip()), "")
