"""The engine of bench/: which rounds count, and what a figure says. Nothing is timed."""

import contextlib
import functools
import os
import subprocess
import sys
import time

import pytest

from places import ROOT
from waiting import wait_until

sys.path.append(str(ROOT / "bench"))

from engine import alternatives, benchmark, quiet, targets
from engine.figures import interval
from engine.used_time import UsedTime, used_seconds


class TestInterval:
    def test_equal_values_leave_no_doubt(self):
        assert interval([0.9] * 21) == [0.9, 0.9]

    def test_it_holds_the_median_and_grows_with_the_spread(self):
        low, high = interval([0.8 + i / 100 for i in range(21)])
        wider = interval([0.8 + i / 10 for i in range(21)])
        assert 0.8 < low < 0.9 < high < 1.0
        assert wider[1] - wider[0] > 2 * (high - low)

    def test_of_a_ratio_of_two_medians(self):
        low, high = interval([3.0, 3.0, 3.0, 5.0, 5.0, 5.0], [2.0] * 6)
        assert (low, high) == (1.5, 2.5)

    def test_few_values_have_none(self):
        assert interval([0.9] * 5) is None and interval([0.9] * 6) == [0.9, 0.9]
        assert interval([0.9] * 6, [0.5] * 5) is None


class TestRounds:
    def test_quiet_rounds_count_first_and_keep_their_order(self):
        kept = quiet.Rounds([(0.0, "a"), (0.9, "b"), (0.04, "c"), (0.2, "d"), (0.01, "e")], 4)
        assert list(kept) == ["a", "c", "d", "e"]
        assert kept.others == [0.0, 0.04, 0.2, 0.01] and kept.marked == 1

    def test_all_rounds_are_kept_with_whether_they_count(self):
        kept = quiet.Rounds([(0.9, "a"), (0.0, "b"), (0.01, "c")], 2)
        assert kept.measured == [
            {"others": 0.9, "counts": False, "measured": "a"},
            {"others": 0.0, "counts": True, "measured": "b"},
            {"others": 0.01, "counts": True, "measured": "c"},
        ]

    @pytest.mark.parametrize(
        ("shares", "calls", "counted", "marked"),
        [
            ([0.0] * 9, 5, [2, 3, 4], 0),
            ([0.9, 0.0, 0.9, 0.0, 0.0, 0.0], 7, [3, 5, 6], 0),
            ([0.9, 0.9, 0.0, 0.9, 0.9, 0.0, 0.0], 8, [2, 4, 7], 1),
            ([0.9] * 9, 8, [2, 3, 4], 3),
        ],
        ids=["quiet", "some again", "one quiet", "never quiet"],
    )
    def test_marked_rounds_are_measured_again_within_bounds(self, monkeypatch, shares, calls, counted, marked):
        monkeypatch.setattr(quiet, "OtherTime", functools.partial(OthersOf, shares))
        made = []
        rounds = quiet.rounds(2, 3, lambda number: made.append(number) or number)
        assert made == list(range(calls))
        assert (list(rounds), rounds.marked) == (counted, marked)

    def test_long_rounds_are_not_measured_again(self, monkeypatch):
        monkeypatch.setattr(quiet, "OtherTime", functools.partial(OthersOf, [0.9] * 9))
        rounds = quiet.rounds(1, 2, lambda number: number, again=False)
        assert (list(rounds), rounds.marked) == ([1, 2], 2)


class OthersOf(contextlib.nullcontext):
    """In place of quiet.OtherTime: the shares of the judged rounds, in order."""

    def __init__(self, shares):
        super().__init__(self)
        self._shares = shares
        self._starts = []

    def share(self, start, _):
        if start not in self._starts:
            self._starts.append(start)
        return self._shares[self._starts.index(start)]


BURN = "import time\nwhile time.process_time() < {}: pass"


class TestOtherTime:
    def test_an_ended_child_is_not_another(self):
        before = used_seconds(os.getpid())
        subprocess.run([sys.executable, "-c", BURN.format(0.3)], check=True)
        assert used_seconds(os.getpid()) - before >= 0.28

    def test_a_process_of_nobody_is_another(self):
        with quiet.OtherTime() as others:
            start = time.monotonic_ns()
            # The shell ends at once, so the program is nobody's child.
            shell = ["sh", "-c", '"$@" > /dev/null 2>&1 & echo $!', "sh", sys.executable, "-c", BURN.format(30)]
            orphan = int(subprocess.run(shell, capture_output=True, text=True, check=True).stdout)
            try:
                wait_until(lambda: used_seconds(orphan) > 0.5, 60)
                # The clock of processors that are idle counts in steps of 10 ms.
                time.sleep(3 * quiet.PERIOD_SECONDS)
                used, end = used_seconds(orphan), time.monotonic_ns()
                time.sleep(3 * quiet.PERIOD_SECONDS)
            finally:
                os.kill(orphan, 9)
        assert others.share(start, end) * (end - start) / 1e9 * os.cpu_count() >= used - 0.2

    def test_a_process_that_has_ended_used_nothing(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        assert used_seconds(ended.pid) == 0.0

    def test_the_time_of_an_orphan_stays(self):
        used = UsedTime(os.getpid(), search_seconds=0)
        shell = ["sh", "-c", '"$@" > /dev/null & echo $!; read line', "sh", sys.executable, "-c", BURN.format(30)]
        with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
            orphan = int(parent.stdout.readline())
            try:
                wait_until(lambda: used_seconds(orphan) > 0.5, 60)
                with_parent = used.seconds()
                parent.communicate("\n")
                alone = used.seconds()
                wait_until(lambda: used_seconds(orphan) > 1.0, 60)
                later = used.seconds()
            finally:
                os.kill(orphan, 9)
            wait_until(lambda: used_seconds(orphan) == 0.0, 60)
        assert alone >= with_parent - 0.02 and later >= with_parent + 0.3
        assert used.seconds() >= later - 0.02

    def test_the_time_of_a_child_stays_whose_parent_ignores_children(self):
        used = UsedTime(os.getpid(), search_seconds=0)
        ignoring = "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        ignoring += "print(subprocess.Popen(sys.argv[1:]).pid, flush=True); sys.stdin.readline()"
        python = [sys.executable, "-c"]
        command = [*python, ignoring, *python, BURN.format(30)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
            child = int(parent.stdout.readline())
            wait_until(lambda: used_seconds(child) > 0.5, 60)
            burning = used.seconds()
            os.kill(child, 9)
            wait_until(lambda: used_seconds(child) == 0.0, 60)
            ended = used.seconds()
            parent.communicate("\n")
        assert ended >= burning - 0.02


class TestVerdict:
    @pytest.mark.parametrize(
        ("key", "value", "interval_", "marked", "verdict"),
        [
            ("resident_ratio", 0.96, [0.955, 0.97], 0, "met"),
            ("resident_ratio", 0.96, None, 0, "met"),
            ("resident_ratio", 0.96, [0.94, 0.97], 0, "within noise"),
            ("resident_ratio", 0.94, [0.93, 0.96], 0, "within noise"),
            ("resident_ratio", 0.94, [0.93, 0.94], 5, "missed"),
            ("resident_ratio", 0.96, [0.955, 0.97], 6, "not quiet"),
            ("lmdb_task_ns_28", 169, [160, 169.5], None, "met"),
            ("lmdb_task_ns_28", 171, [170.5, 172], None, "missed"),
            ("lmdb_task_ns_28", 171, [169, 172], None, "within noise"),
            ("c_ring_ratio_784", 0.5, [0.4, 0.6], 0, "–"),
        ],
    )
    def test_it(self, key, value, interval_, marked, verdict):
        assert targets.verdict(key, {"value": value, "interval": interval_, "rounds": 20, "marked": marked}) == verdict


class TestOptions:
    @staticmethod
    def settled(*words):
        return benchmark.settle(benchmark.parser("cycle", "").parse_args(words), [784], 21)

    @pytest.mark.parametrize(
        ("words", "reduced"),
        [
            ([], []),
            (["--bytes", "2GiB", "--repetitions", "41", "--warm-up", "9", "--sizes", "64,784"], []),
            (["--bytes", "1MiB", "--repetitions", "20"], ["--bytes", "--repetitions"]),
            (["--warm-up", "0", "--pairs", "1000", "--sizes", "64"], ["--warm-up", "--pairs", "--sizes"]),
        ],
    )
    def test_less_than_usual_is_noted(self, words, reduced):
        assert self.settled(*words).reduced == reduced

    def test_a_changed_copy_leaves_the_options(self):
        options = self.settled()
        changed = benchmark.changed(options, repetitions=3)
        assert (changed.repetitions, changed.warm_up, options.repetitions) == (3, options.warm_up, 21)


class TestAlternatives:
    def test_the_rounds_of_the_ratio_count(self):
        rounds = [
            {"others": 0.0, "counts": counts, "measured": [{"baseline": {"start": start, "nanos": nanos}}]}
            for counts, start, nanos in [(False, 100, 7e9), (True, 200, 2e9), (True, 300, 4e9)]
        ]
        consumer = {"first_block": [0, 0, 110, 230, 350], "peak_bytes": 1}
        figures = alternatives.figures(rounds, 1, consumer)
        assert figures["seconds"]["values"] == [2.0, 4.0]
        assert figures["first_seconds"]["values"] == [30 / 1e9, 50 / 1e9]
