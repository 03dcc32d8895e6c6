"""The engine of bench/: which rounds count, what a figure says, the report, and the C baselines. Nothing is timed."""

import argparse
import json
import os
import subprocess
import sys
import time

import pytest

from places import ROOT
from waiting import wait_until

sys.path.append(str(ROOT / "bench"))

from engine import benchmark, paper, quiet, report, targets
from engine.figures import Table, interval, spread


class TestInterval:
    def test_equal_values_leave_no_doubt(self):
        assert interval([0.9] * 21) == [0.9, 0.9]

    def test_it_holds_the_median_and_grows_with_the_spread(self):
        low, high = interval([0.8 + i / 100 for i in range(21)])
        wider = interval([0.8 + i / 10 for i in range(21)])
        assert 0.8 < low < 0.9 < high < 1.0
        assert wider[1] - wider[0] > 2 * (high - low)

    def test_of_a_ratio_of_two_medians(self):
        low, high = interval([3.0, 4.0, 5.0], [2.0, 2.0, 2.0])
        assert (low, high) == (1.5, 2.5)


class TestRounds:
    def test_quiet_rounds_count_first_and_keep_their_order(self):
        kept = quiet.Rounds([(0.0, "a"), (0.9, "b"), (0.04, "c"), (0.2, "d"), (0.01, "e")], 4)
        assert list(kept) == ["a", "c", "d", "e"]
        assert kept.others == [0.0, 0.04, 0.2, 0.01] and kept.marked == 1

    def test_marked_rounds_are_measured_again_within_bounds(self):
        calls = []
        counted = quiet.rounds(2, 3, lambda number: calls.append(number) or number)
        assert 5 <= len(calls) <= 8 and calls == list(range(len(calls)))
        assert len(counted) == 3 and min(counted) >= 2


BURN = "import time\nwhile time.process_time() < {}: pass"


class TestOtherTime:
    def test_an_ended_child_is_not_another(self):
        before = quiet.used_seconds(os.getpid())
        subprocess.run([sys.executable, "-c", BURN.format(0.3)], check=True)
        assert quiet.used_seconds(os.getpid()) - before >= 0.28

    def test_a_process_of_nobody_is_another(self):
        with quiet.OtherTime() as others:
            start = time.monotonic_ns()
            # The shell ends at once, so the program is nobody's child.
            shell = ["sh", "-c", '"$@" > /dev/null 2>&1 & echo $!', "sh", sys.executable, "-c", BURN.format(30)]
            orphan = int(subprocess.run(shell, capture_output=True, text=True, check=True).stdout)
            try:
                wait_until(lambda: quiet.used_seconds(orphan) > 0.5, 60)
                # The clock of processors that are idle counts in steps of 10 ms.
                time.sleep(3 * quiet.PERIOD_SECONDS)
                used, end = quiet.used_seconds(orphan), time.monotonic_ns()
                time.sleep(3 * quiet.PERIOD_SECONDS)
            finally:
                os.kill(orphan, 9)
        assert others.share(start, end) * (end - start) / 1e9 * os.cpu_count() >= used - 0.2

    def test_a_process_that_has_ended_used_nothing(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        assert quiet.used_seconds(ended.pid) == 0.0


class TestVerdict:
    @pytest.mark.parametrize(
        ("key", "value", "marked", "verdict"),
        [
            ("read_ratio", 0.96, 0, "met"),
            ("read_ratio", 0.94, 5, "missed"),
            ("read_ratio", 0.96, 6, "not quiet"),
            ("block_batch_us", 24, None, "met"),
            ("block_batch_us", 26, None, "missed"),
            ("write_ratio", 0.5, 0, "–"),
        ],
    )
    def test_it(self, key, value, marked, verdict):
        assert targets.verdict(key, {"value": value, "rounds": 20, "marked": marked}) == verdict


def output_of(name, quick=False, wrong=()):
    """The JSON of a benchmark, as its program writes it."""
    results = benchmark.Results(name)
    ratio = spread([0.97, 0.98, 0.99])
    results.case({"operation": "copy", "ring_bytes": 8, "ranks": 1}, {"in_place_gb_s": spread([8.0, 9.0, 10.0])})
    results.figure(f"{name}_ratio", {"ratio": ratio, "others": [0.0, 0.01, 0.2]})
    results.summary["plain"] = 3
    results.wrong += wrong
    table = Table("A table", ["ring", "GB/s"], picture={"x": 0, "bars": [1]})
    table.add("8 MiB", "9.0")
    results.tables.append(table)
    machine = {
        "processor": "a processor", "cores": 2, "last_level_cache": "8 MiB", "memory_bytes": 1 << 30, "kernel": "6",
        "load_before": 0.5, "stolen_seconds": 0.1, "gb_s": {"read": {"1": 9.0, "2": 17.0}, "copy": {"1": 7.0}},
    }  # fmt: skip
    return json.loads(json.dumps(results.as_json(argparse.Namespace(quick=quick), machine)))


def test_a_benchmark_prints_what_its_figures_are_worth():
    results = benchmark.Results("read")
    results.figure("read_ratio", {"ratio": spread([0.9] * 3), "others": [0.0, 0.2, 0.3]})
    results.figure("quiet_ratio", {"ratio": spread([0.9] * 3), "others": [0.0] * 3})
    results.figure("one_round", {"ratio": spread([0.9])})
    results.summary["plain"] = 3
    assert results.text("one_round") == "one_round 0.9"
    assert results.text("read_ratio") == "read_ratio 0.9 (95 %: 0.9–0.9), others disturbed 2 of 3 rounds"
    assert results.text("quiet_ratio") == "quiet_ratio 0.9 (95 %: 0.9–0.9)"
    assert results.text("plain") == "plain 3"


class TestReport:
    def test_a_figure_has_its_interval_target_and_verdict(self):
        figures = report.figures_of([output_of("read")])
        ratio = figures["read_ratio"]
        assert (ratio["value"], ratio["rounds"], ratio["marked"]) == (0.98, 3, 1)
        assert 0.97 <= ratio["interval"][0] <= 0.98 <= ratio["interval"][1] <= 0.99
        assert (ratio["target"], ratio["verdict"]) == ("0.95", "not quiet")
        assert (figures["plain"]["interval"], figures["plain"]["verdict"]) == (None, "–")

    def test_it_opens_with_the_figures_and_has_pictures(self, tmp_path):
        report.write(tmp_path / "report.md", [output_of("read")])
        lines = (tmp_path / "report.md").read_text().splitlines()
        assert lines[2].startswith("| figure | median | 95 % interval | target | verdict")
        assert "| a processor, 2 cores" not in lines and any("17.0" in line and "7.0" in line for line in lines)
        assert {file.name for file in tmp_path.glob("*.png")} == {
            f"{name}-0-{page}.png" for name in ("read", "paper") for page in ("light", "dark")
        }

    def test_the_paper_is_beside_this_run(self):
        rows = paper.table([output_of("read")])["rows"]
        assert rows[0] == ["14, 1", "ranks copy blocks out of shared memory", "6.57", "1", "9.00", "6.57", "9.00"]
        assert [row[0] for row in rows] == ["14, 1", "14, 5"]


class TestPublish:
    @staticmethod
    def publish(folder, name, outputs, verified=True):
        for output in outputs:
            (folder / f"{output['benchmark']}.json").write_text(json.dumps(output))
        if outputs:
            summary = {"verified": verified, "benchmarks": [output["benchmark"] for output in outputs]}
            (folder / "summary.json").write_text(json.dumps(summary))
        command = [ROOT / "bench" / "publish", name, "--run", folder, "--to", folder / "to"]
        return subprocess.run(command, capture_output=True, text=True)

    def test_the_report_without_pictures(self, tmp_path):
        done = self.publish(tmp_path, "two-cores", [output_of("read"), output_of("write")])
        assert done.returncode == 0, done.stderr
        text = (tmp_path / "to" / "two-cores.md").read_text()
        assert text.startswith("# ") and "| read_ratio | 0.98 |" in text and "## write" in text
        assert "picture" not in text

    @pytest.mark.parametrize(
        ("outputs", "verified", "message"),
        [
            ([], True, "run 'make bench' first"),
            ([output_of("read")], False, "its data was wrong"),
            ([output_of("read", quick=True)], True, "was a quick one"),
        ],
        ids=["no run", "wrong", "quick"],
    )
    def test_what_is_refused(self, tmp_path, outputs, verified, message):
        done = self.publish(tmp_path, "two-cores", outputs, verified)
        assert done.returncode == 1 and message in done.stderr
        assert not (tmp_path / "to").exists()

    def test_a_name_is_no_path(self, tmp_path):
        done = self.publish(tmp_path, "../x", [])
        assert done.returncode == 2 and "'../x' is not a name" in done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Compiles a program of bench/c without the library."""
    folder, sources = tmp_path_factory.mktemp("programs"), ROOT / "bench" / "c"

    def build(name, source):
        common = [sources / f"{part}.c" for part in ("checksum", "clock", "memory", "messages", "rounds")]
        program = folder / name
        command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-o", program, sources / source, *common, "-lz"]
        subprocess.run(command, check=True)
        return program

    return build


class TestPrograms:
    @staticmethod
    def answers(program, arguments, lines):
        words = [program, *map(str, arguments)]
        done = subprocess.run(words, input=lines, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    @pytest.mark.parametrize(("element", "block", "ring"), [(64, 64, 128), (784, 4096, 8192), (4096, 8192, 8192)])
    def test_the_c_ring_reads_every_word_in_every_round(self, built, element, block, ring):
        elements = 3 * ring // element + 1
        answers = self.answers(built("ring", "ring.c"), [elements * element, element, block, ring], "\n" * 3)
        words = elements * element // 8
        expected = sum(i * 0x9E3779B97F4A7C15 for i in range(words)) % (1 << 64)
        assert [(a["elements"], a["bytes"], a["sum"]) for a in answers] == [
            (elements, elements * element, expected)
        ] * 3

    def test_the_c_ring_says_what_does_not_fit(self, built):
        done = subprocess.run([built("ring", "ring.c"), "4096", "4096", "64", "128"], capture_output=True, text=True)
        assert done.returncode == 1 and "an element has 4096 bytes" in done.stderr

    def test_the_bandwidth_reads_and_copies_all(self, built):
        read, copy = self.answers(built("bandwidth", "bandwidth.c"), [1 << 20], "read\ncopy\n")
        assert read["bytes"] == copy["bytes"] == 1 << 20
        assert read["sum"] == (1 << 17) * 0x0101010101010101 % (1 << 64)
