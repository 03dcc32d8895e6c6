"""Rounds that others on this machine disturbed are measured again."""

import os
import time

from engine import machine

# The share of all processors that others may have. With more, a round is measured again.
LIMIT = 0.1


class Rounds(list):
    """The rounds that count. `disturbed`: how many of them had more than LIMIT."""

    disturbed = 0


def rounds(warm_up, wanted, measure):
    """Calls `measure(number)` `warm_up` times, and then until it has enough rounds, at most twice as many as wanted."""
    for number in range(warm_up):
        measure(number)
    measured = []
    while len(measured) < 2 * wanted and sum(share <= LIMIT for share, _, _ in measured) < wanted:
        number = warm_up + len(measured)
        others, start = _other_seconds(), time.monotonic()
        one = measure(number)
        share = (_other_seconds() - others) / (time.monotonic() - start) / os.cpu_count()
        measured.append((share, number, one))
    # The quietest, in their order.
    kept = sorted(sorted(measured, key=lambda one: max(LIMIT, one[0]))[:wanted], key=lambda one: one[1])
    made = Rounds(one for _, _, one in kept)
    made.disturbed = sum(share > LIMIT for share, _, _ in kept)
    return made


def turns(ways, number):
    """The ways of a round, which begins with another one than the round before: the first finds other caches."""
    ordered = list(ways)
    first = number % len(ordered)
    return ordered[first:] + ordered[:first]


def _other_seconds():
    """Processor seconds that neither this process nor what it has started used; stolen time counts, too."""
    with open("/proc/stat", encoding="utf-8") as file:
        idle, iowait = map(int, file.readline().split()[4:6])
    busy = time.monotonic() * os.cpu_count() - (idle + iowait) / os.sysconf("SC_CLK_TCK")
    return busy - machine.used_seconds()
