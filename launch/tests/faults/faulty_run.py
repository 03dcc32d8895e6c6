"""One run with faults: a Supplier, and ranks whose output is read all the time."""

import concurrent.futures

import headers
from places import BUILD
from ranks import Rank
from supplier import SupplierFailure
from tally import TALLY
from waiting import wait_until

# supply-cat with fail points: `make test-faults` builds it.
PROGRAM = BUILD / "mpi-client-faults" / "supply-cat"

# Timeout of each wait on both sides, in seconds: longer than any pause in the tests that must succeed.
TIMEOUT = 60


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
        """Starts a rank and reads its output: without a reader it would stall."""
        rank = Rank(self.pairs, local_rank, self.timeout, arguments, PROGRAM, environment)
        self.ranks[local_rank] = rank
        self._ends[local_rank] = self._readers.submit(rank.finish)

    def start_supplier(self, supplier, *options):
        options = ("--epochs", self.epochs, *options)
        self._supplied = supplier.start(
            self.database, self.pairs, *options, ranks=len(self.ranks), timeout=self.timeout
        )

    def finish_rank(self, local_rank):
        """Returns the exit status."""
        return self._ends[local_rank].result()

    def finish_ranks(self):
        return [self.finish_rank(local_rank) for local_rank in sorted(self.ranks)]

    def ends_well(self, share=1):
        """Both sides succeed, and every element arrived once in each epoch: at each reader of rings that are shared."""
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
        for reader in range(share):
            assert TALLY.compare(self.database, ranks[reader::share], self.epochs) == (0, 0)

    def is_supplied(self):
        """The Supplier succeeds."""
        self._supplied.result(timeout=self.timeout)

    def fails(self, patience=None):
        """The Supplier's message."""
        try:
            self._supplied.result(timeout=patience or 3 * self.timeout)
        except SupplierFailure as failure:
            return str(failure)
        raise AssertionError("the Supplier has succeeded")

    def published(self, local_rank=0):
        return headers.read(self.pairs.mapped_file(local_rank), "published")

    def published_by(self, process):
        """The published blocks of each pair that this executor is attached to, by local rank."""
        attached = [rank for rank in self.ranks if headers.read(self.pairs.mapped_file(rank), "task_pid") == process]
        return {local_rank: self.published(local_rank) for local_rank in attached}

    def task_process(self, local_rank=0):
        """Waits until an executor is attached to a pair. Returns its process."""
        return wait_until(lambda: headers.read(self.pairs.mapped_file(local_rank), "task_pid"))

    def wait_for_blocks(self, count, local_rank=0):
        """Waits until `count` more blocks are published."""
        before = self.published(local_rank)
        wait_until(lambda: self.published(local_rank) >= before + count)

    def end(self):
        """Ends all ranks in any case."""
        for rank in self.ranks.values():
            rank.process.kill()
        concurrent.futures.wait(self._ends.values())
        self._readers.shutdown()
