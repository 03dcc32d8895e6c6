"""Finds which side of a run failed first, and in which line it said why."""

import os
import re

from .processes import signal_name

# The first and the last line of Open MPI's own messages.
_FRAME = "-" * 74
_LARGE_BYTES, _LAST_BYTES = 1 << 20, 1 << 18

# Lines that the MPI library writes to a rank's stderr by itself.
_OF_THE_LIBRARY = re.compile(r"\[[^ ]+:[0-9]+\] |Abort\(-?[0-9]+\) on node ")


def failed_side(first, status):
    """
    The side that failed first, or None. `first` is the side that ended first; `status` has the exit status of each
    side, None if it did not end by itself.

    If both failed, the order of their ends does not tell: mpirun takes a second to end the other ranks, Spark a second
    to stop. But a failure travels through the pairs, and the Supplier's status 3 says that it came from a rank.
    """
    second = "ranks" if first == "supplier" else "supplier"
    if status[first] == 0:
        return None if status[second] == 0 else second
    return "ranks" if status["ranks"] and status["supplier"] in (None, 0, 3) else "supplier"


class StderrFiles:
    """The files, in a folder, that have the stderr of each rank. Only their ends are kept."""

    def __init__(self, folder, may_trim):
        """may_trim: whether the files are the run's own."""
        self._folder = folder
        self._may_trim = may_trim
        self._trimmed = {}

    def trim(self):
        """Empties files that have become large. Call it from time to time: a run may take weeks."""
        for file in self._files() if self._may_trim else ():
            # mpirun continues at its own offset, so what it writes follows a hole.
            if file.stat().st_blocks * 512 > _LARGE_BYTES:
                self._trimmed[file] = _last_lines(file)
                os.truncate(file, 0)

    def lines(self):
        """The last lines of all ranks."""
        return set().union(*map(_last_lines, self._files()), *self._trimmed.values())

    def _files(self):
        return self._folder.glob("**/rank.*/stderr")


def _last_lines(file):
    with open(file, "rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - _LAST_BYTES))
        text = stream.read().lstrip(b"\0").decode(errors="replace")
    return text.replace("\r", "\n").split("\n")


def of_ranks(lines, files, status):
    """
    Returns the failed rank's last line before mpirun's own first line. If mpirun spoke first, returns the first rank's
    line after it, unless a signal killed the rank.

    lines: the last lines on the stderr of the ranks and of mpirun. files: StderrFiles, whose lines are the ranks'.
    None: all lines are, but for those in Open MPI's frames. status: mpirun's exit status.
    """
    written = files.lines() if files else set(_outside_frames(lines))
    killer = signal_name(status)
    words = _reason(lines, written, killer)
    return words or (f"a rank was ended by {killer}" if killer else "no message on stderr")


def _outside_frames(lines):
    """The lines that are not between two lines of dashes, which Open MPI puts around its own."""
    inside = False
    for line in lines:
        if line == _FRAME:
            inside = not inside
        elif not inside:
            yield line


def _reason(lines, written, killer):
    """The wanted line, or None. written: the ranks' own lines. killer: the signal that killed a rank, or None."""
    words = None
    launcher_spoke = False
    for line in lines:
        if line not in written:
            if words or killer:
                break
            launcher_spoke = True
        elif not _OF_THE_LIBRARY.match(line):
            words = line
            if launcher_spoke:
                break
    return words
