"""What ranks of rank.py have written."""

import collections


def check(tally, folder, expected, is_cut_off):
    """
    Counts the elements of a run. expected: how often each (epoch, id), or each id, must be there. is_cut_off: the run
    has failed, so elements may be missing, but there may be no others.
    """
    has_epochs = isinstance(next(iter(expected)), tuple)
    received = collections.Counter()
    for file in folder.glob("*.ids"):
        for line in file.read_text().splitlines(keepends=True):
            # A rank that was killed may have written a part of its last line.
            if line.endswith("\n"):
                epoch, *ids = map(int, line.split())
                received.update((epoch, number) if has_epochs else number for number in ids)
    tally.elements += received.total()
    tally.duplicated += (received - expected).total()
    if not is_cut_off:
        tally.lost += (expected - received).total()


def processes(folder):
    """The processes of the ranks that have started, by number."""
    return {int(file.stem): int(text) for file in folder.glob("*.pid") if (text := file.read_text())}
