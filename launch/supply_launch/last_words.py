"""Finds which side of a run failed first, and in which line it said why."""

import re

from .processes import signal_name

# Lines that the MPI library writes to a rank's stderr by itself.
_OF_THE_LIBRARY = re.compile(r"\[[^ ]+:[0-9]+\] |Abort\(-?[0-9]+\) on node ")

# A feeder writes about the pairs that the ranks have failed, and at its end, also of a failed run, what it has sent.
_OF_A_FEEDER = "supply-feeder: "
_SENT = re.compile(_OF_A_FEEDER + r"node .* sent [0-9]+ elements, .* of [0-9]+ pairs ")


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


def of_ranks(lines, folder, status):
    """
    The line in which the rank that failed first says why, among the last lines on the ranks' stderr.

    folder: has a file with each rank's own lines. A line in none of these files is the launcher's. If there is no
    folder, all lines are the ranks'. status: the launcher's exit status.

    The wanted line is the last line of a rank before the launcher says that it ends the other ranks: these may write
    about that. On a busy machine the launcher's lines come first. Then it is the first line of a rank after them,
    unless a rank was killed and could write nothing. A feeder's line is the reason only if no rank wrote one.
    """
    written = None
    if folder:
        texts = (file.read_text(errors="replace") for file in folder.glob("**/rank.*/stderr"))
        written = {line for text in texts for line in text.replace("\r", "\n").split("\n")}
    killer = signal_name(status)
    words = _reason([line for line in lines if not line.startswith(_OF_A_FEEDER)], written, killer)
    words = words or _reason([line for line in lines if not _SENT.match(line)], written, killer)
    return words or (f"a rank was ended by {killer}" if killer else "no message on stderr")


def _reason(lines, written, killer):
    """
    The wanted line, or None. written: the ranks' own lines, or None if all are. killer: the signal that killed a rank,
    or None.
    """
    words = None
    launcher_spoke = False
    for line in lines:
        if written is not None and line not in written:
            if words or killer:
                break
            launcher_spoke = True
        elif not _OF_THE_LIBRARY.match(line):
            words = line
            if launcher_spoke:
                break
    return words
