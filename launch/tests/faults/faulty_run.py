"""One run with faults in it: a Supplier, and ranks that are read from all the time."""

import concurrent.futures

import pytest

import headers
from places import BUILD
from ranks import Rank
from supplier import SupplierFailure
from tally import TALLY
from waiting import wait_until

# supply-cat with fail points: `make test-faults` builds it.
PROGRAM = BUILD / "mpi-client-faults" / "supply-cat"

# Limit of each wait on both sides: longer than any pause of the tests that must go well.
TIMEOUT = 40


class FaultyRun:
    def __init__(self, pairs, database, epochs, timeout=TIMEOUT):
        self.pairs = pairs
        self.database = database
        self.epochs = epochs
        self.timeout = timeout
        self.ranks = {}
        self._ends = {}
        self._supplied = None
        self._readers = concurrent.futures.ThreadPoolExecutor(max_workers=64)

    def start_rank(self, local_rank, environment=(), arguments=()):
        """Starts a rank and begins to read from it: one that nobody reads from would stall."""
        rank = Rank(self.pairs, local_rank, self.timeout, arguments, PROGRAM, environment)
        self.ranks[local_rank] = rank
        self._ends[local_rank] = self._readers.submit(rank.finish)

    def start_supplier(self, supplier, *options):
        options = ("--epochs", self.epochs, *options)
        self._supplied = supplier.start(
            self.database, self.pairs, *options, ranks=len(self.ranks), timeout=self.timeout
        )

    def finish_rank(self, local_rank):
        """Its exit status."""
        return self._ends[local_rank].result()

    def finish_ranks(self):
        return [self.finish_rank(local_rank) for local_rank in sorted(self.ranks)]

    def ends_well(self):
        """Both sides end well, and every element has come once an epoch."""
        try:
            statuses = self.finish_ranks()
            if self._supplied is not None:
                self._supplied.result(timeout=self.timeout)
        except Exception:
            TALLY.stuck += 1
            raise
        ranks = [self.ranks[local_rank] for local_rank in sorted(self.ranks)]
        assert [rank.error for rank in ranks] == [""] * len(ranks)
        assert statuses == [0] * len(ranks)
        assert TALLY.compare(self.database, ranks, self.epochs) == (0, 0)

    def is_supplied(self):
        """The Supplier ends well."""
        self._supplied.result(timeout=self.timeout)

    def fails(self):
        """The Supplier's message."""
        with pytest.raises(SupplierFailure) as failure:
            self._supplied.result(timeout=3 * self.timeout)
        return str(failure.value)

    def published(self, local_rank=0):
        return headers.read(self.pairs.mapped_file(local_rank), "published")

    def published_by(self, process):
        """By local rank what is published in the pairs that this executor is attached to."""
        attached = [rank for rank in self.ranks if headers.read(self.pairs.mapped_file(rank), "task_pid") == process]
        return {local_rank: self.published(local_rank) for local_rank in attached}

    def task_process(self, local_rank=0):
        """The executor that is attached to a pair, once there is one."""
        return wait_until(lambda: headers.read(self.pairs.mapped_file(local_rank), "task_pid"))

    def wait_for_blocks(self, count, local_rank=0):
        """Waits until so many blocks more are published."""
        before = self.published(local_rank)
        wait_until(lambda: self.published(local_rank) >= before + count)

    def end(self):
        """Whatever happened, no rank outlives it."""
        for rank in self.ranks.values():
            rank.process.kill()
        concurrent.futures.wait(self._ends.values())
        self._readers.shutdown()
