"""Starts both sides of a run again when one of them has failed (supply-run --max-restarts)."""

from __future__ import annotations

import os
import re
import signal
import struct
import sys

from . import config_files

# The beginning of a mapped file (proto/layout.tsv): version, generation, rank, and the fields start_...
_HEADER = struct.Struct("<8xI4xQ32xi12xIII4xQ")
# What happens to processes and nodes, and not at a place of the program: it may happen there twice.
_SIGNALS_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
_OF_EXECUTORS = re.compile(r"ExecutorLost|[Ee]xecutor \S+ (was |has )?(lost|exited|ended|gone)|FetchFailed")
# Looks at the pairs, after which the line of a restart waits no longer for the places where ranks begin.
_LOOKS = 15


class Starts:
    """Where the ranks of this node begin, read from their pairs, and the line that says so."""

    def __init__(self, mapped_files, line):
        """line: of a restart, with a '%s' for the places; None at first."""
        # What killed ranks of an earlier run have left is not of this one.
        self._left = {file: header[1] if (header := _read(file)) else 0 for file in mapped_files}
        self._line = line
        self._looks = 0
        self.places = {}

    def look(self):
        """Call it from time to time. Returns whether it will hardly see anything new."""
        before = dict(self.places)
        for file, generation in self._left.items():
            header = _read(file)
            if header and header[1] != generation:
                self.places[file] = header[2:]
        self._looks += 1
        settled = self._looks >= _LOOKS or before == self.places != {}
        if settled:
            self.say()
        return settled

    def say(self):
        """Writes the line, once."""
        if self._line:
            print(f"supply-run: {self._line % self._from()}", file=sys.stderr, flush=True)
            self._line = None

    def _from(self):
        if not self.places:
            return ""
        rank, epoch, inside, partition, element = min(self.places.values())
        if inside:
            return f", from epoch {epoch}, partition {partition}, element {element} of rank {rank}"
        return f", from epoch {epoch}" if epoch else ", from the beginning"


class Restarts:
    """How often a run has been started again, and why."""

    def __init__(self, most, many_nodes):
        self.count = 0
        self._most = most
        self._many_nodes = many_nodes
        # The attempt before: the wording of its failure, the failure, and where its ranks began.
        self._wording, self._failure = None, ""
        self._places = {}

    def starts(self, config):
        """What an attempt with that config file looks at, or None if it is the only one."""
        if not self._most:
            return None
        line = f"restart {self.count} of {self._most}%s: {self._failure.replace('%', '%%')}" if self.count else None
        return Starts(config_files.mapped_files(config), line)

    def after(self, starts, status, failure):
        """Whether both sides start again after that failure, and the text of the failure."""
        if self.count == self._most:
            return False, failure
        wording = None if status - 128 in _SIGNALS_FROM_OUTSIDE else wording_of(failure)
        if self.count and wording == self._wording is not None and self._stands(starts.places):
            why = f"the attempt before began at the same place, and said: {self._failure}"
            return False, f"{failure} (no restart: {why})"
        self._wording, self._failure, self._places = wording, failure, starts.places
        self.count += 1
        return True, None

    def _stands(self, places):
        """Whether no rank has begun elsewhere than in the attempt before. Pairs of other nodes are not seen."""
        if self._many_nodes and not (self._places and places):
            return False
        return not any(places[file] != self._places[file] for file in places.keys() & self._places.keys())


def wording_of(failure: str) -> str | None:
    """What is equal for two failures at one place, without ports and the like. None: an executor has gone."""
    return None if _OF_EXECUTORS.search(failure) else re.sub("[0-9]+", "", failure)


def _read(mapped_file):
    """Generation, rank and place of a pair, or None if it is not there yet."""
    try:
        # A pipe of that name must not block.
        with open(mapped_file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            header = file.read(_HEADER.size)
    except OSError:
        return None
    fields = _HEADER.unpack(header) if len(header) == _HEADER.size else (0,)
    return fields if fields[0] else None
