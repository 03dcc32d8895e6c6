"""What the memory of this machine gives, by plain C programs on one and two cores."""

import contextlib
import os

from engine import machine
from engine.figures import spread
from engine.pairs import NO_FILES, Rank

BYTES = 256 << 20
ROUNDS = 5
TIMEOUT_SECONDS = 60


def measure():
    """GB/s of reading a large array and of copying it to another, by number of programs at once."""
    return {
        operation: {count: _together(operation, count) for count in range(1, min(2, os.cpu_count()) + 1)}
        for operation in ("read", "copy")
    }


def _together(operation, count):
    with contextlib.ExitStack() as programs:
        started = [
            Rank(NO_FILES, machine.program("bench-bandwidth"), BYTES, timeout=TIMEOUT_SECONDS) for _ in range(count)
        ]
        for program in started:
            programs.callback(program.close)
        return spread([_round(started, operation) for _ in range(ROUNDS)])["median"]


def _round(started, operation):
    for program in started:
        program.ask(operation)
    answers = [program.answer() for program in started]
    start = min(answer["start"] for answer in answers)
    return sum(answer["bytes"] for answer in answers) / (max(a["start"] + a["nanos"] for a in answers) - start)
