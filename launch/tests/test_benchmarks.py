"""The engine of bench/: which rounds count, what a figure says, and the report. Nothing is timed."""

import argparse
import contextlib
import errno
import functools
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

from places import ROOT
from waiting import wait_until

sys.path.append(str(ROOT / "bench"))

from engine import alternatives, benchmark, chart, disk_reads, memory_group, paper, quiet, report, targets
from engine.figures import Table, interval, spread
from engine.suite import BENCHMARKS
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
            ("read_ratio", 0.96, [0.955, 0.97], 0, "met"),
            ("read_ratio", 0.96, None, 0, "met"),
            ("read_ratio", 0.96, [0.94, 0.97], 0, "within noise"),
            ("read_ratio", 0.94, [0.93, 0.96], 0, "within noise"),
            ("read_ratio", 0.94, [0.93, 0.94], 5, "missed"),
            ("read_ratio", 0.96, [0.955, 0.97], 6, "not quiet"),
            ("block_batch_us", 24, [23, 24.5], None, "met"),
            ("block_batch_us", 26, [25.5, 27], None, "missed"),
            ("block_batch_us", 26, [24, 27], None, "within noise"),
            ("write_ratio", 0.5, [0.4, 0.6], 0, "–"),
        ],
    )
    def test_it(self, key, value, interval_, marked, verdict):
        assert targets.verdict(key, {"value": value, "interval": interval_, "rounds": 20, "marked": marked}) == verdict


def output_of(name, quick=False, wrong=(), reduced=()):
    """The JSON of a benchmark, as its program writes it."""
    results = benchmark.Results(name)
    ratio = spread([0.97, 0.97, 0.98, 0.98, 0.99, 0.99])
    if name == "read":
        results.case({"operation": "copy", "ring_bytes": 8, "ranks": 1}, {"in_place_gb_s": spread([8.0, 9.0, 10.0])})
    results.figure(f"{name}_ratio", {"ratio": ratio, "others": [0.0, 0.01, 0.2, 0.2, 0.0, 0.0]})
    results.summary["plain"] = 3
    results.wrong += wrong
    table = Table("A table", ["ring", "GB/s"], picture={"x": 0, "bars": [1]})
    table.add("8 MiB", "9.0")
    if name == "dataframes":
        table = Table("Ways", ["way", "samples/s"])
        for number, way in enumerate(chart.WAYS, 1):
            table.add(way, f"{number}234567 (1–2)")
    results.tables.append(table)
    machine = {
        "processor": "a processor", "cores": 2, "last_level_cache": "8 MiB", "memory_bytes": 1 << 30, "kernel": "6",
        "load_before": 0.5, "stolen_seconds": 0.1, "gb_s": {"read": {"1": 9.0, "2": 17.0}, "copy": {"1": 7.0}},
    }  # fmt: skip
    return json.loads(json.dumps(results.as_json(argparse.Namespace(quick=quick, reduced=reduced), machine)))


def test_a_benchmark_prints_what_its_figures_are_worth():
    results = benchmark.Results("read")
    results.figure("read_ratio", {"ratio": spread([0.9] * 6), "others": [0.0, 0.2, 0.3, 0.0, 0.0, 0.0]})
    results.figure("quiet_ratio", {"ratio": spread([0.9] * 6), "others": [0.0] * 6})
    results.figure("one_round", {"ratio": spread([0.9])})
    results.summary["plain"] = 3
    assert results.text("one_round") == "one_round 0.9"
    assert results.text("read_ratio") == "read_ratio 0.9 (95 %: 0.9–0.9), others disturbed 2 of 6 rounds"
    assert results.text("quiet_ratio") == "quiet_ratio 0.9 (95 %: 0.9–0.9)"
    assert results.text("plain") == "plain 3"


class TestReport:
    def test_a_figure_has_its_interval_target_and_verdict(self):
        figures = report.figures_of([output_of("read")])
        ratio = figures["read_ratio"]
        assert (ratio["value"], ratio["rounds"], ratio["marked"]) == (0.98, 6, 2)
        assert 0.97 <= ratio["interval"][0] <= 0.98 <= ratio["interval"][1] <= 0.99
        assert (ratio["target"], ratio["verdict"]) == ("0.95", "not quiet")
        assert (figures["plain"]["interval"], figures["plain"]["verdict"]) == (None, "–")

    def test_it_opens_with_the_figures_and_has_pictures(self, tmp_path):
        report.write(tmp_path / "report.md", [output_of("read")])
        lines = (tmp_path / "report.md").read_text().splitlines()
        assert lines[2].startswith("| figure | median | 95 % interval | target | verdict")
        assert any(line.startswith("a processor, 2 cores, ") for line in lines)
        assert any("17.0" in line and "7.0" in line for line in lines)
        assert {file.name for file in tmp_path.glob("*.png")} == {f"read-0-{page}.png" for page in ("light", "dark")}

    def test_the_paper_is_beside_this_run(self):
        rows = paper.rows([output_of("read")])
        what = "ranks copy blocks out of shared memory"
        assert rows[0] == ["the paper, figure 14", what, "1 process: 6.57 GB/s", "1 pair: 9.00 GB/s"]
        assert rows[1][2] == "5 processes: 33.55 GB/s, 6.71 each"
        assert len(rows) == 2

    def test_a_run_without_one_pair_has_no_row_of_one_process(self):
        output = output_of("read")
        output["cases"][0]["ranks"] = 2
        [row] = paper.rows([output])
        assert row[3] == "2 pairs: 9.00 GB/s, 4.50 each"

    def test_what_others_have_published_is_one_table(self, tmp_path):
        output = output_of("read")
        output["published"] = [["Alchemist", "Sending", "0.3 GB/s", "3 GB/s"]]
        report.write(tmp_path / "report.md", [output])
        section = (tmp_path / "report.md").read_text().partition("## Figures that others")[2].partition("## read")[0]
        assert "| the paper, figure 14 | " in section
        assert "| Alchemist | Sending | 0.3 GB/s | 3 GB/s |" in section


class TestChart:
    def test_it_shows_the_samples_per_second_of_each_way(self, tmp_path):
        report.write(tmp_path / "report.md", [output_of("dataframes")])
        for page in chart.COLOURS:
            text = (tmp_path / f"{chart.NAME}-{page}.svg").read_text()
            assert all(f">{figure}<" in text for figure in ("1,230,000", "2,230,000", "3,230,000", "4,230,000"))

    def test_that_of_the_readme_has_the_published_figures(self):
        published = (ROOT / "bench/results/epyc-2-cores.md").read_text().partition("### DataFrames")[2]
        for way, name in chart.WAYS.items():
            [figure] = re.findall(rf"^\| {way} \| [^|]* \| (\d+) ", published.partition("### ")[0], re.MULTILINE)
            for page in chart.COLOURS:
                text = (ROOT / f"docs/pictures/{chart.NAME}-{page}.svg").read_text()
                assert f">{html.escape(name, quote=False)}<" in text
                assert f">{chart.figure_text(float(figure))}<" in text


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


class TestAgain:
    """bench/run --again, in a copy of bench/ whose `read` has a result without measuring."""

    @pytest.fixture
    def again(self, tmp_path):
        shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("results", "read"))
        (tmp_path / "build" / "bench").mkdir(parents=True)
        for place in ("build/venv", "launch"):
            (tmp_path / place).symlink_to(ROOT / place)
        measured = tmp_path / "bench" / "read"
        measured.write_text(f"#!/bin/sh\ncat >$2 <<'END'\n{json.dumps(output_of('read'))}\nEND\n")
        measured.chmod(0o755)

        def run(*outputs):
            for output in outputs:
                (tmp_path / "build" / "bench" / f"{output['benchmark']}.json").write_text(json.dumps(output))
            command = [tmp_path / "bench" / "run", "--again", "read"]
            return subprocess.run(command, capture_output=True, text=True)

        return run

    def test_the_others_are_those_of_the_last_run(self, again, tmp_path):
        done = again(*map(output_of, BENCHMARKS[1:]))
        assert done.returncode == 0, done.stderr
        summary = json.loads((tmp_path / "build" / "bench" / "summary.json").read_text())
        assert summary["verified"] and summary["benchmarks"] == BENCHMARKS

    def test_a_gap_is_named(self, again):
        wrong = {**output_of(BENCHMARKS[1]), "verified": False}
        done = again(wrong, *map(output_of, BENCHMARKS[3:]))
        assert done.returncode == 1
        assert [line for line in done.stderr.splitlines() if "error" in line] == [
            f"bench/run: error: bench/{name} has no right result of the last run: add it to --again"
            for name in BENCHMARKS[1:3]
        ]


class TestPublish:
    @staticmethod
    def publish(folder, name, outputs, verified=True):
        for output in outputs:
            (folder / f"{output['benchmark']}.json").write_text(json.dumps(output))
        if outputs:
            summary = {"verified": verified, "benchmarks": [output["benchmark"] for output in outputs]}
            (folder / "summary.json").write_text(json.dumps(summary))
        command = [
            ROOT / "bench" / "publish",
            name,
            "--run",
            folder,
            "--to",
            folder / "to",
            "--pictures",
            folder / "pictures",
        ]
        return subprocess.run(command, capture_output=True, text=True)

    def test_the_report_without_pictures(self, tmp_path):
        done = self.publish(tmp_path, "two-cores", [output_of(name) for name in BENCHMARKS])
        assert done.returncode == 0, done.stderr
        text = (tmp_path / "to" / "two-cores.md").read_text()
        assert text.startswith("# ") and "| read_ratio | 0.98 |" in text and "## write" in text
        assert "picture" not in text
        assert len(list((tmp_path / "pictures").iterdir())) == len(chart.COLOURS)

    @pytest.mark.parametrize(
        ("outputs", "verified", "message"),
        [
            ([], True, "run 'make bench' first"),
            ([output_of("read")], False, "its data was wrong"),
            ([output_of(name, quick=True) for name in BENCHMARKS], True, "was a quick one"),
            ([output_of(name) for name in BENCHMARKS[1:]], True, f"lacks {BENCHMARKS[0]}"),
            ([output_of(name, reduced=["--bytes"]) for name in BENCHMARKS], True, "less than usual (--bytes)"),
        ],
        ids=["no run", "wrong", "quick", "partial", "tiny"],
    )
    def test_what_is_refused(self, tmp_path, outputs, verified, message):
        done = self.publish(tmp_path, "two-cores", outputs, verified)
        assert done.returncode == 1 and message in done.stderr
        assert not (tmp_path / "to").exists()

    def test_a_name_is_no_path(self, tmp_path):
        done = self.publish(tmp_path, "../x", [])
        assert done.returncode == 2 and "'../x' is not a name" in done.stderr


class TestDiskReads:
    def test_the_reads_of_a_span(self, tmp_path):
        file = tmp_path / "data"
        file.write_bytes(os.urandom(8 << 20))
        reads = disk_reads.DiskReads()
        with reads.watch(os.getpid()), open(file, "rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            cold = time.monotonic_ns()
            opened.read()
            warm = time.monotonic_ns()
            time.sleep(3 * disk_reads.PERIOD_SECONDS)
            again = time.monotonic_ns()
            opened.seek(0)
            opened.read()
            end = time.monotonic_ns()
        assert reads.between(again, end) == 0
        if disk_reads.read_bytes(os.getpid()):
            assert 8 << 20 <= reads.between(cold, warm) < 16 << 20


class TestMemoryGroup:
    @pytest.mark.skipif(bool(memory_group.why_not()), reason=memory_group.why_not())
    def test_the_error_of_the_context_is_not_hidden(self, capsys, monkeypatch):
        groups = []
        rmdir = pathlib.Path.rmdir

        def busy(group):
            groups.append(group)
            raise OSError(errno.EBUSY, "busy")

        found = memory_group._root()
        monkeypatch.setattr(memory_group, "_root", lambda: found)
        try:
            with pytest.raises(KeyError), memory_group.limited([], 64 << 20):
                monkeypatch.setattr(pathlib.Path, "rmdir", busy)
                raise KeyError
        finally:
            for group in groups:
                rmdir(group)
        assert f"{groups[0]} is left" in capsys.readouterr().err
