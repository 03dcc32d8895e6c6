"""Supervises the processes of a command: starts each in a session of its own, relays their output, and ends them.

One thread does it all. The handler only notes a signal. `Sides.wait` reports it later, so no signal interrupts a start.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

from . import signals

_KEPT_LINES = 1000
_ENDING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def ties() -> dict[str, Any]:
    """Arguments of Popen, of which the process gets SIGTERM when this command dies, however it dies."""
    return {"preexec_fn": functools.partial(signals.end_with_parent, os.getpid(), signal.SIGTERM)}


def signal_name(status: int) -> str | None:
    """The name of the signal in an exit status of 128 + its number, or None: exit(-1) has status 255."""
    number = status - 128
    return signals.name(number) if 0 < number < signal.NSIG else None


def living(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, _group, of = file.read_text(errors="replace").rpartition(")")[2].split()[:4]
            if int(of) == session and state not in "ZX":
                found.append(int(file.parent.name))
    return found


class Output:
    """A stream that is read as it comes: its last lines are kept, and it may be passed on to stderr."""

    def __init__(self, stream, pass_on):
        self._stream = stream
        self._pass_on = pass_on
        self._tail = b""

    def read(self):
        """Reads what is there. Returns whether that was the end."""
        data = os.read(self._stream.fileno(), 65536)
        # A progress bar ends its lines with \r.
        self._tail = b"\n".join((self._tail + data.replace(b"\r", b"\n")).split(b"\n")[-_KEPT_LINES:])
        if self._pass_on:
            with contextlib.suppress(OSError):
                sys.stderr.buffer.write(data)
                sys.stderr.buffer.flush()
        return not data

    def close(self):
        self._stream.close()

    def lines(self):
        """The last lines, without the blank ones."""
        return [line for line in self._tail.decode(errors="replace").split("\n") if line.strip()]


class Side:
    """A process, which leads a session of its own."""

    def __init__(self, process):
        self.process = process
        self.status = None  # As a shell has it: 128 + the number of the signal that killed the process.
        self.killed = False
        self.output = None  # What it writes, if it is relayed.
        self.notice = None  # Its stdout, if a line there counts as its end.

    def has_ended(self):
        """Whether the process has ended. It stays a zombie until `Sides.end`: no other process gets its number."""
        if self.status is None:
            ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended:
                self.killed = ended.si_code != os.CLD_EXITED
                self.status = ended.si_status + 128 * self.killed
        return self.status is not None

    def signal_group(self, number):
        """Sends a signal to the process and its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def living(self):
        """The processes of the session that have not ended."""
        return living(self.process.pid)


class Sides:
    """The processes that a command supervises, by name."""

    def __init__(self, again=False):
        """again: whether other processes may be started after `end`."""
        self.signal = 0  # The first signal that asked this command to end.
        self._again = again
        self._sides = {}
        self._selector = selectors.DefaultSelector()
        self._wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake, selectors.EVENT_READ)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in _ENDING_SIGNALS:
            # nohup lets SIGHUP be ignored.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._note_signal)

    def _note_signal(self, number, _frame):
        self.signal = self.signal or number

    def listen(self):
        """After `end`: notes the signals that have come since."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING_SIGNALS)

    def start(self, name, command, relay=None, notice=False, **settings):
        """
        Starts a process in a session of its own, so that a terminal's Ctrl-C reaches this command alone.

        relay: "stderr", or "both" for stdout, too, is passed on to stderr. notice: `wait` returns also when the process
        writes a line to stdout.
        """
        settings = {"stdin": subprocess.DEVNULL, **settings}
        if relay:
            settings["stderr"] = subprocess.STDOUT if relay == "both" else subprocess.PIPE
        if relay == "both" or notice:
            settings["stdout"] = subprocess.PIPE
        settings.update(start_new_session=True, **ties())
        process = subprocess.Popen(list(map(str, command)), **settings)
        side = self._sides[name] = Side(process)
        if relay:
            side.output = self.read(process.stdout if relay == "both" else process.stderr)
        if notice:
            side.notice = self.read(process.stdout, pass_on=False)
        return side

    def read(self, stream, pass_on=True):
        """Reads a stream while this command waits."""
        output = Output(stream, pass_on)
        self._selector.register(stream, selectors.EVENT_READ, output)
        return output

    def wait(self, seconds=None, but=None):
        """
        Waits until a process other than `but` has ended, and returns its name. Returns "signal" if a signal asks this
        command to end, and None after `seconds`.
        """
        latest = None if seconds is None else time.monotonic() + seconds
        while True:
            if self.signal:
                return "signal"
            for name, side in self._sides.items():
                if name != but and (side.has_ended() or (side.notice and side.notice.lines())):
                    return name
            remaining = None if latest is None else latest - time.monotonic()
            if remaining is not None and remaining <= 0:
                return None
            self._read_streams(remaining)

    def _read_streams(self, seconds):
        """Reads what the processes have written, or write within `seconds`."""
        for key, _ in self._selector.select(seconds):
            if not key.data:
                os.read(self._wake, 4096)
            elif key.data.read():
                self._selector.unregister(key.fileobj)
                key.data.close()

    def wait_until_gone(self, side, seconds):
        """Waits at most `seconds` until no process of the side's session is left."""
        latest = time.monotonic() + seconds
        while side.living() and time.monotonic() < latest:
            self._read_streams(0.1)

    def end(self, seconds=5):
        """
        Ends all processes: TERM to their process groups, at most `seconds` of waiting, KILL to all that is left in
        their sessions. mpirun gives its ranks process groups of their own, and ends them on TERM; Spark then removes
        its folders. From here on no signal keeps this command, and what it calls, from cleaning up.
        """
        if self._again:
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
        else:
            for number in _ENDING_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
        sides, self._sides = self._sides.values(), {}
        for side in sides:
            side.signal_group(signal.SIGTERM)
        for side in sides:
            self.wait_until_gone(side, seconds)
            for pid in side.living():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        # What they have written last. A process that left its session may keep a stream open.
        latest = time.monotonic() + 5
        while len(self._selector.get_map()) > 1 and time.monotonic() < latest:
            self._read_streams(0.1)
        for side in sides:
            side.process.poll()


def remove_folders(folders):
    """Removes what a run has made. A failure is ignored: NFS keeps a file that is open, and its folder."""
    subprocess.run(["rm", "-rf", "--", *map(str, folders)], check=False)
