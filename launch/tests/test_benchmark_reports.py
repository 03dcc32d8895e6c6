"""What a run of bench/ leaves: the report, the chart, a run again of some benchmarks, and what is published."""

import argparse
import html
import json
import re
import shutil
import subprocess
import sys

import pytest

from places import ROOT

sys.path.append(str(ROOT / "bench"))

from engine import benchmark, chart, report, targets
from engine.figures import Table, spread
from engine.suite import BENCHMARKS


def output_of(name, quick=False, wrong=(), reduced=()):
    """The JSON of a benchmark, as its program writes it."""
    results = benchmark.Results(name)
    ratio = spread([0.97, 0.97, 0.98, 0.98, 0.99, 0.99])
    key = "cycle_ratio_1m" if name == "cycle" else f"{name}_ratio"
    results.figure(key, {"ratio": ratio, "others": [0.0, 0.01, 0.2, 0.2, 0.0, 0.0]})
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
        "load_before": 0.5, "stolen_seconds": 0.1, "seconds": 90.0,
        "gb_s": {"read": {"1": 9.0, "2": 17.0}, "copy": {"1": 7.0}},
    }  # fmt: skip
    return json.loads(json.dumps(results.as_json(argparse.Namespace(quick=quick, reduced=reduced), machine)))


def test_a_benchmark_prints_what_its_figures_are_worth():
    results = benchmark.Results("cycle")
    results.figure("cycle_ratio", {"ratio": spread([0.9] * 6), "others": [0.0, 0.2, 0.3, 0.0, 0.0, 0.0]})
    results.figure("quiet_ratio", {"ratio": spread([0.9] * 6), "others": [0.0] * 6})
    results.figure("one_round", {"ratio": spread([0.9])})
    results.summary["plain"] = 3
    assert results.text("one_round") == "one_round 0.9"
    assert results.text("cycle_ratio") == "cycle_ratio 0.9 (95 %: 0.9–0.9), others disturbed 2 of 6 rounds"
    assert results.text("quiet_ratio") == "quiet_ratio 0.9 (95 %: 0.9–0.9)"
    assert results.text("plain") == "plain 3"


class TestReport:
    def test_a_figure_has_its_interval_target_and_verdict(self):
        figures = report.figures_of([output_of("cycle")])
        ratio = figures["cycle_ratio_1m"]
        assert (ratio["value"], ratio["rounds"], ratio["marked"]) == (0.98, 6, 2)
        assert 0.97 <= ratio["interval"][0] <= 0.98 <= ratio["interval"][1] <= 0.99
        assert (ratio["target"], ratio["verdict"]) == ("0.9", "not quiet")
        assert (figures["plain"]["interval"], figures["plain"]["verdict"]) == (None, "–")

    def test_it_opens_with_the_figures_and_has_pictures(self, tmp_path):
        report.write(tmp_path / "report.md", [output_of("cycle")])
        lines = (tmp_path / "report.md").read_text().splitlines()
        assert lines[2].startswith("| figure | median | 95 % interval | target | verdict")
        assert any(line.startswith("a processor, 2 cores, ") for line in lines)
        assert any("17.0" in line and "7.0" in line and line.endswith(" 90 |") for line in lines)
        assert any("together took 2 minutes" in line for line in lines)
        assert {file.name for file in tmp_path.glob("*.png")} == {f"cycle-0-{page}.png" for page in ("light", "dark")}


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


class TestAgain:
    """bench/run --again, in a copy of bench/ whose `cycle` has a result without measuring."""

    @pytest.fixture
    def again(self, tmp_path):
        shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("results", "cycle"))
        (tmp_path / "build" / "bench").mkdir(parents=True)
        for place in ("build/venv", "launch", "mpi-client"):
            (tmp_path / place).symlink_to(ROOT / place)
        measured = tmp_path / "bench" / "cycle"
        measured.write_text(f"#!/bin/sh\ncat >$2 <<'END'\n{json.dumps(output_of('cycle'))}\nEND\n")
        measured.chmod(0o755)

        def run(*outputs):
            for output in outputs:
                (tmp_path / "build" / "bench" / f"{output['benchmark']}.json").write_text(json.dumps(output))
            command = [tmp_path / "bench" / "run", "--again", "cycle"]
            return subprocess.run(command, capture_output=True, text=True)

        return run

    def test_the_others_are_those_of_the_last_run(self, again, tmp_path):
        done = again(*map(output_of, BENCHMARKS[1:]))
        assert done.returncode == 0, done.stderr
        summary = json.loads((tmp_path / "build" / "bench" / "summary.json").read_text())
        assert summary["verified"] and summary["benchmarks"] == BENCHMARKS

    def test_a_gap_is_named(self, again):
        done = again(output_of(BENCHMARKS[1], wrong=["rank 0"]), *map(output_of, BENCHMARKS[3:]))
        assert done.returncode == 1
        assert [line for line in done.stderr.splitlines() if "error" in line] == [
            f"bench/run: error: bench/{name} has no right result of the last run: add it to --again"
            for name in BENCHMARKS[1:3]
        ]


class TestPublish:
    @staticmethod
    def publish(folder, name, outputs, verified=True, more=()):
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
            *more,
        ]
        return subprocess.run(command, capture_output=True, text=True)

    def test_the_page_has_figures_with_a_target_and_some_tables(self, tmp_path):
        done = self.publish(tmp_path, "two-cores", [output_of(name) for name in BENCHMARKS])
        assert done.returncode == 0, done.stderr
        text = (tmp_path / "to" / "two-cores.md").read_text()
        assert text.startswith("# ") and "| cycle_ratio_1m | 0.98 |" in text and "lmdb_ratio" not in text
        assert "## cycle" in text and "## lmdb" not in text and "picture" not in text
        assert len(list((tmp_path / "pictures").iterdir())) == len(chart.COLOURS)

    def test_one_benchmark_is_renewed(self, tmp_path):
        outputs = [output_of(name) for name in BENCHMARKS]
        again = next(output for output in outputs if output["benchmark"] == "cycle")
        again["summary"]["cycle_ratio_192k"] = 0.95
        assert self.publish(tmp_path, "two-cores", outputs).returncode == 0
        page = tmp_path / "to" / "two-cores.md"
        before = page.read_text()
        again["tables"][0]["rows"][0][1] = "renewed"

        def renew():
            again["summary"]["cycle_ratio_192k"] = 0.5
            (tmp_path / "cycle.json").write_text(json.dumps(again))
            return self.publish(tmp_path, "two-cores", [], more=["--only", "cycle"])

        done = renew()
        assert done.returncode == 0, done.stderr
        after = page.read_text()
        gone, come = (
            set(one.splitlines()) - set(other.splitlines()) for one, other in ((before, after), (after, before))
        )
        starts = {"| cycle_ratio_192k | 0.5 |", "| 8 MiB | renewed |"}
        assert len(come) == len(starts) and all(any(line.startswith(start) for line in come) for start in starts)
        # Other benchmarks have the row of 8 MiB still.
        assert [line.startswith("| cycle_ratio_192k | 0.95 |") for line in gone] == [True]
        assert after.index("## cycle") < after.index("renewed") < after.index("## alternatives")
        again["machine"]["cores"] = 64
        done = renew()
        assert done.returncode == 1 and "was measured on another machine" in done.stderr and page.read_text() == after

    def test_the_page_of_this_repository_is_one(self):
        """Renewed by what it has, it stays as it is: so its tables and its figures are found."""
        text = (ROOT / "bench/results/epyc-2-cores.md").read_text()
        keys = set(re.findall(r"^\| (\w+) \| [\d.e+-]+ \|", text.partition("## The machine")[0], re.MULTILINE))
        assert keys == {*targets.TARGETS, *targets.LIMITS}
        assert re.findall("^## ([a-z_]+)$", text, re.MULTILINE) == [
            name for name in BENCHMARKS if name in report.PUBLISHED
        ]

    @pytest.mark.parametrize(
        ("outputs", "verified", "message"),
        [
            ([], True, "run 'make bench' first"),
            ([output_of("cycle")], False, "its data was wrong"),
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
