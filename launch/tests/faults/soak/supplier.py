"""The Supplier supplies ranks of C from an LMDB, while executors and ranks are killed, stopped, and fail at steps."""

import threading

from epoch_check import EpochCheck
from fail_point import RESIDENT_FILE_STEPS, TASK_STEPS
from faulty_run import PROGRAM
from ranks import Rank
from soak.ground import RANK_IS_DEAD, RANKS, STUCK, TIMEOUT
from soak.torment import PairFaults, go_through
from supplier import SupplierFailure

EPOCHS = 1200


def copy(ground):
    _supply(ground)


def in_place(ground):
    _supply(ground, "--in-place")


def shared(ground):
    _supply(ground, share=2)


def resident_folder(ground):
    folder = ground.folder / "resident"
    _supply(ground, "--resident-folder", folder)
    ground.must_be_empty(folder)


def _supply(ground, *options, share=1):
    run = _Run(ground, ("--share", share, *options), share)
    try:
        step_faults = _StepFaults(ground)
        faults = [*PairFaults(ground, run.mapped_files).weighted, (step_faults.kill, 6), (step_faults.throw, 3)]

        def sample():
            step_faults.count_taken()
            run.sample(ground.samples)

        killed_rank = go_through(ground, run.is_over, run.mapped_files, faults, sample)
        ground.fail_point.disarm()
        run.finish(killed_rank)
    finally:
        run.end()


class _Run:
    """One run, its ranks read and compared as they go. share: N ranks read one ring, and each gets all of it."""

    def __init__(self, ground, options, share):
        self._pairs = ground.pairs()
        self.mapped_files = [self._pairs.mapped_file(number) for number in range(RANKS)]
        environment = {**dict(ground.fail_point.environment), "SUPPLY_SHARE": str(share)}
        self._ranks = [
            Rank(self._pairs, number, TIMEOUT, program=PROGRAM, environment=environment) for number in range(RANKS)
        ]
        self._checks = [EpochCheck(ground.database, RANKS // share, ground.tally) for _ in range(share)]
        self._threads = [
            threading.Thread(target=self._checks[number % share].read, args=[rank.process.stdout])
            for number, rank in enumerate(self._ranks)
        ]
        for thread in self._threads:
            thread.start()
        options = ("--epochs", EPOCHS, *options)
        self._supplied = ground.cluster.start(ground.database, self._pairs, *options, ranks=RANKS, timeout=TIMEOUT)

    def is_over(self):
        return self._supplied.done()

    def sample(self, samples):
        for number, rank in enumerate(self._ranks):
            samples.take(f"rank {number}", rank.process.pid)
        samples.take_folder("pairs", self._pairs.folder)

    def finish(self, killed_rank):
        """Waits for both sides, and counts the results. killed_rank: None, or the rank that has cut the run off."""
        failure = None
        try:
            self._supplied.result(timeout=STUCK)
        except SupplierFailure as error:
            failure = str(error)
        for rank, thread in zip(self._ranks, self._threads):
            rank.process.wait(timeout=STUCK)
            thread.join()
        for check in self._checks:
            check.finish(EPOCHS if failure is None and killed_rank is None else None)
        errors = [rank.process.stderr.read().decode() for rank in self._ranks]
        if failure and killed_rank is not None:
            assert any(text in failure for text in RANK_IS_DEAD), failure
            # A rank that has all its data has ended well before.
            statuses = [rank.process.returncode for rank in self._ranks]
            others = [errors[number] for number, status in enumerate(statuses) if number != killed_rank and status]
            assert others == [f"supply-cat: {failure}\n"] * len(others), (failure, errors)
        else:
            assert not failure and not any(errors), f"a run that had to go well failed: {failure} {errors}"

    def end(self):
        for rank in self._ranks:
            rank.process.kill()
            rank.process.wait()
        for rank, thread in zip(self._ranks, self._threads):
            thread.join()
            rank.process.stdout.close()
            rank.process.stderr.close()


class _StepFaults:
    """Faults of the next process that reaches a step. They count when it does: attaching is rare."""

    def __init__(self, ground):
        self._ground, self._fail_point, self._tally = ground, ground.fail_point, ground.tally
        self._armed = None

    def count_taken(self):
        taken = self._fail_point.count_taken()
        self._tally.faults += taken
        self._tally.kills += taken if self._armed == "kill" else 0

    def kill(self, _):
        self._arm("kill")

    def throw(self, _):
        self._arm("throw")

    def _arm(self, action):
        step = self._ground.chance.choice(TASK_STEPS + RESIDENT_FILE_STEPS)
        self.count_taken()
        self._armed = action
        self._fail_point.arm(step, action, self._ground.chance.randrange(200) if step.startswith("P") else 0)
