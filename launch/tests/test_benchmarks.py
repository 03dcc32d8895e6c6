"""The engine of bench/: which rounds count, what a figure says, what a run leaves and publishes. Nothing is timed."""

import argparse
import html
import json
import os
import re
import subprocess
import sys
import types

import pytest

from places import ROOT
from processes import ran

sys.path.append(str(ROOT / "bench"))

from engine import benchmark, chart, exchange, machine, quiet, report
from engine.exchange import GROUP, SORT
from engine.figures import Table, interval, spread
from engine.suite import BENCHMARKS


class TestInterval:
    def test_equal_values_leave_no_doubt(self):
        assert interval([0.9] * 21) == [0.9, 0.9]

    def test_it_holds_the_median_and_grows_with_the_spread(self):
        low, high = interval([0.8 + i / 100 for i in range(21)])
        wider = interval([0.8 + i / 10 for i in range(21)])
        assert 0.8 < low < 0.9 < high < 1.0
        assert wider[1] - wider[0] > 2 * (high - low)

    def test_few_values_have_none(self):
        assert interval([0.9] * 4) is None and interval([0.9] * 5) == [0.9, 0.9]


class TestRounds:
    @pytest.mark.parametrize(
        ("shares", "calls", "counted", "disturbed"),
        [
            ([0.0] * 3, 5, [2, 3, 4], 0),
            ([0.9, 0.0, 0.9, 0.0, 0.0], 7, [3, 5, 6], 0),
            ([0.9, 0.9, 0.0, 0.9, 0.9, 0.0], 8, [2, 4, 7], 1),
            ([0.9] * 6, 8, [2, 3, 4], 3),
        ],
        ids=["quiet", "some again", "few quiet", "never quiet"],
    )
    def test_disturbed_rounds_are_measured_again_within_bounds(self, monkeypatch, shares, calls, counted, disturbed):
        others = iter([second for share in shares for second in (0.0, share)])
        clock = iter(range(100))
        monkeypatch.setattr(quiet, "_other_seconds", lambda: next(others))
        monkeypatch.setattr(quiet, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
        monkeypatch.setattr(quiet.os, "cpu_count", lambda: 1)
        made = []
        rounds = quiet.rounds(2, 3, lambda number: made.append(number) or number)
        assert made == list(range(calls))
        assert (list(rounds), rounds.disturbed) == (counted, disturbed)

    def test_a_child_that_has_ended_is_not_another(self):
        before = machine.processor_seconds(os.getpid())
        burn = "import time\nwhile time.process_time() < 0.3: pass"
        subprocess.run([sys.executable, "-c", burn], check=True)
        assert machine.processor_seconds(os.getpid()) - before >= 0.25

    def test_a_process_counts_whose_parents_forget_it(self):
        program = """
import signal, subprocess, sys
from engine import machine
machine.enter_group("test")
if machine.groups is None:
    sys.exit(77)
# As Spark's Python daemon.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
before = machine.used_seconds()
spin = "import time\\nend = time.process_time() + 0.3\\nwhile time.process_time() < end: pass"
subprocess.run([sys.executable, "-c", spin])
assert machine.used_seconds() - before >= 0.25
"""
        done = ran(sys.executable, "-c", program, cwd=machine.ROOT / "bench")
        if done.returncode == 77:
            pytest.skip(done.stderr)
        assert (done.returncode, done.stderr) == (0, "")


class TestOptions:
    @pytest.mark.parametrize(
        ("words", "reduced"),
        [
            ([], []),
            (["--bytes", "2GiB", "--repetitions", "41", "--warm-up", "9"], []),
            (["--bytes", "1MiB", "--repetitions", "20", "--warm-up", "0"], ["bytes", "repetitions", "warm_up"]),
        ],
    )
    def test_less_than_usual_is_noted(self, words, reduced):
        assert benchmark.settle(benchmark.parser("cycle", "").parse_args(words), [784]).reduced == reduced


def output_of(name, quick=False, reduced=(), spark="4.1.3"):
    """The JSON of a benchmark, as its program writes it."""
    results = benchmark.Results(name)
    ratio = spread([0.97, 0.97, 0.98, 0.98, 0.99, 0.99])
    results.figure(f"{name}_ratio", {"ratio": ratio, "disturbed": 2})
    results.value("plain", 3)
    table = Table("A table", ["ring", "GB/s"])
    table.add("8 MiB", "9.0")
    if name == "dataframes":
        table = Table("Ways", ["way", "samples/s"])
        for number, way in enumerate(chart.WAYS, 1):
            table.add(way, f"{number}234567 (1–2)")
    results.tables.append(table)
    about = {
        "processor": "a processor", "cores": 2, "last_level_cache": "8 MiB", "memory_bytes": 1 << 30, "kernel": "6",
        "provenance": {"commit": "abc", "Java": "17", "Spark": spark},
    }  # fmt: skip
    return json.loads(json.dumps(results.as_json(argparse.Namespace(quick=quick, reduced=reduced), about)))


def test_a_benchmark_prints_what_its_figures_are_worth():
    results = benchmark.Results("cycle")
    results.figure("cycle_ratio", {"ratio": spread([0.9] * 6), "disturbed": 2})
    results.figure("one_round", {"ratio": spread([0.9]), "disturbed": 0})
    results.value("plain", 3)
    assert results.text("one_round") == "one_round 0.9"
    assert results.text("cycle_ratio") == "cycle_ratio 0.9 (95 %: 0.9–0.9), others disturbed 2 of 6 rounds"
    assert results.text("plain") == "plain 3"


def test_a_floor_that_is_missed_or_unknown_is_named():
    figures = {"ratio": {"value": 0.5}}
    lines = benchmark.missed_floors([("ratio", 0.4), ("ratio", 0.6), ("other", 1)], figures)
    assert lines == ["ratio is 0.5, below its floor 0.6", "--floor other: no such figure in this run: ratio"]


class TestReport:
    def test_it_opens_with_twelve_figures_and_shows_none_that_others_disturbed(self, monkeypatch):
        assert len(report.TWELVE) == 12
        twelve = [("cycle_ratio", "all"), ("plain", "some"), ("other", "none")]
        monkeypatch.setattr(report, "TWELVE", [(key, what, "a bound", "its meaning") for key, what in twelve])
        lines = report.text([output_of("cycle")]).splitlines()
        assert "| cycle_ratio | not quiet | – | – | all | a bound | its meaning |" in lines
        assert "| plain | 3 | – | – | some | a bound | its meaning |" in lines
        assert "| other | not measured | – | – | none | a bound | its meaning |" in lines
        assert "| 8 MiB | 9.0 |" in lines and "Measured with: commit abc; Java 17; Spark 4.1.3." in lines
        assert any(line.startswith("a processor, 2 cores, ") for line in lines)

    def test_the_terminal_has_all_figures(self):
        rows = report.summary_table(report.figures_of([output_of("cycle")])).rows
        assert rows[0][0] == "cycle_ratio" and rows[0][3] == "2 of 6"
        assert rows[-1] == ["plain", "3", "–", "–"]

    def test_the_chart_shows_the_samples_per_second_of_each_way(self, tmp_path):
        chart.draw([output_of("dataframes")], tmp_path)
        for page in chart.COLOURS:
            text = (tmp_path / f"{chart.NAME}-{page}.svg").read_text()
            assert all(f">{figure}<" in text for figure in ("1,230,000", "2,230,000", "3,230,000", "4,230,000"))

    def test_the_chart_leaves_out_a_way_that_fails(self, tmp_path):
        output = output_of("dataframes")
        output["tables"][0]["rows"][1][1] = "–"
        chart.draw([output], tmp_path)
        text = (tmp_path / f"{chart.NAME}-light.svg").read_text()
        assert text.count("<rect") == len(chart.WAYS) - 1 and list(chart.WAYS.values())[1] not in text

    def test_the_chart_of_the_readme_has_the_published_figures(self):
        published = (ROOT / "bench/results/epyc-2-cores.md").read_text().partition("### DataFrames")[2]
        for way, name in chart.WAYS.items():
            [figure] = re.findall(rf"^\| {way} \| [^|]* \| (\d+) ", published.partition("### ")[0], re.MULTILINE)
            for page in chart.COLOURS:
                text = (ROOT / f"docs/pictures/{chart.NAME}-{page}.svg").read_text()
                assert f">{html.escape(name, quote=False)}<" in text
                assert f">{chart.figure_text(float(figure))}<" in text


class TestPublish:
    @staticmethod
    def publish(folder, name, outputs, verified=True, also=None):
        for output in outputs:
            (folder / f"{output['benchmark']}.json").write_text(json.dumps(output))
        if outputs:
            summary = {"verified": verified, "benchmarks": [output["benchmark"] for output in outputs]}
            (folder / "summary.json").write_text(json.dumps(summary))
        command = [ROOT / "bench" / "publish", name, "--run", folder, "--to", folder / "to"]
        command += ["--also", also] if also else []
        return ran(*command)

    def test_the_page_has_all_tables(self, tmp_path):
        done = self.publish(tmp_path, "two-cores", [output_of(name) for name in BENCHMARKS])
        assert done.returncode == 0, done.stderr
        text = (tmp_path / "to/bench/results/two-cores.md").read_text()
        assert re.findall("^## ([a-z_]+)$", text, re.MULTILINE) == BENCHMARKS
        assert len(list((tmp_path / "to/docs/pictures").iterdir())) == len(chart.COLOURS)
        measured = json.loads((tmp_path / "to/bench/results/two-cores.json").read_text())
        assert measured[0]["machine"]["provenance"]["commit"] == "abc"
        assert len(measured[0]["figures"]["cycle_ratio"]["values"]) == 6

    def test_the_tables_of_another_spark_follow(self, tmp_path):
        (tmp_path / "other").mkdir()
        self.publish(tmp_path / "other", "other", [output_of("dataframes", spark="4.3.0")])
        outputs = [output_of(name) for name in BENCHMARKS]
        assert self.publish(tmp_path, "two-cores", outputs, also=tmp_path / "other").returncode == 0
        text = (tmp_path / "to/bench/results/two-cores.md").read_text()
        assert re.findall("^## ([a-z_]+.*)$", text, re.MULTILINE) == [*BENCHMARKS, "dataframes (Spark 4.3.0)"]

    @pytest.mark.parametrize(
        ("outputs", "verified", "message"),
        [
            ([], True, "run 'make bench' first"),
            ([output_of("cycle")], False, "its data was wrong"),
            ([output_of(name, quick=True) for name in BENCHMARKS], True, "measured less than usual"),
            ([output_of(name) for name in BENCHMARKS[1:]], True, f"lacks {BENCHMARKS[0]}"),
            ([output_of(name, reduced=["bytes"]) for name in BENCHMARKS], True, "measured less than usual"),
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


SOURCE = {"elements": 5, "groups": 4, "key_sum": 30, "bound": 7}


def of_rank(first_key, last_key, elements=2, descents=0):
    return {"first_key": first_key, "last_key": last_key, "elements": elements, "descents": descents}


class TestExchange:
    """Which results bench/exchange refuses."""

    def test_the_ranks_together_have_the_source(self):
        ranks = [
            {"elements": 2, "groups": 1, "key_sum": exchange.WORD - 10, "bound": 3},
            {"elements": 3, "groups": 3, "key_sum": 40, "bound": 4},
        ]
        assert exchange.compared(SOURCE, exchange.together(ranks, GROUP)) == []

    def test_ranks_may_divide_the_rows_of_a_key_that_are_sorted(self):
        ranks = [{**of_rank(1, 5, 3), "groups": 2, "key_sum": 10, "bound": 3}]
        ranks.append({**of_rank(5, 9), "groups": 3, "key_sum": 20, "bound": 4})
        assert exchange.compared(SOURCE, exchange.together(ranks, SORT)) == []
        assert exchange.compared(SOURCE, exchange.together(ranks, GROUP)) == ["groups 5, the source has 4"]

    @pytest.mark.parametrize("key", list(SOURCE))
    def test_each_sum_that_differs_is_named(self, key):
        lines = exchange.compared(SOURCE, {**SOURCE, key: SOURCE[key] + 1})
        assert lines == [f"{key} {SOURCE[key] + 1}, the source has {SOURCE[key]}"]

    @pytest.mark.parametrize(
        "ranks",
        [
            [of_rank(1, 5), of_rank(5, 9)],
            [of_rank(0, 0, elements=0), of_rank(1, 5)],
            [of_rank(3, 5), of_rank(0, 0, elements=0), of_rank(6, 9)],
        ],
        ids=["in order", "first empty", "middle empty"],
    )
    def test_keys_in_order(self, ranks):
        assert exchange.out_of_order(ranks) == []

    def test_keys_out_of_order(self):
        lines = exchange.out_of_order([of_rank(3, 5, descents=2), of_rank(0, 0, elements=0), of_rank(4, 9)])
        assert lines == ["rank 0: 2 keys below the key before", "rank 2 begins with key 4, the rank before ends with 5"]

    @pytest.mark.parametrize(
        ("kind", "groups", "wrong"),
        [(GROUP, 4, []), (GROUP, 5, ["groups 5, the source has 4"]), (SORT, 4, ["the keys are not in order"])],
    )
    def test_sparks_own_job(self, kind, groups, wrong):
        class Spark:
            @staticmethod
            def run(*_, **__):
                return {"nanos": 2e9, "count": 5, "tally": {**SOURCE, "groups": groups, "in_order": False}}

        one = exchange.shuffled(Spark, kind, SOURCE, 2, verify=True)
        assert (one["seconds"], one["wrong"]) == (2.0, wrong)
