"""Real ranks: processes of supply-cat, each with its end of a pair."""

import collections
import os
import re
import subprocess

from places import SUPPLY_CAT

# Longer than every timeout in the tests, in seconds. It ends a test that hangs, and measures nothing.
END_OF_PATIENCE = 90


class Rank:
    """One process of supply-cat."""

    def __init__(self, pairs, local_rank=0, timeout=20, arguments=(), program=SUPPLY_CAT, environment=()):
        self.local_rank = local_rank
        number = str(local_rank)
        self.process = subprocess.Popen(
            [program, *pairs.options(), "--timeout", str(timeout), *arguments],
            env={
                **os.environ,
                "OMPI_COMM_WORLD_RANK": number,
                "OMPI_COMM_WORLD_LOCAL_RANK": number,
                **dict(environment),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines = []
        self.error = ""

    def finish(self):
        """Waits for the end of the process. Returns the exit status."""
        try:
            out, error = self.process.communicate(timeout=END_OF_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        self.lines = out.decode().splitlines()
        self.error = error.decode().strip()
        return self.process.returncode

    def end(self):
        """Ends the process in any case."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def multiset(ranks):
    """All lines that the ranks printed."""
    return collections.Counter(line for rank in ranks for line in rank.lines)


def one_line(rank):
    """The only line on the rank's stderr, without the tool's name: a failure is one line."""
    assert re.fullmatch(r"supply-cat: [^\n]+", rank.error), rank.error
    return rank.error.removeprefix("supply-cat: ")
