"""The frames of bench/dataframes: every way has all rows of every frame, and what the table says. Nothing is timed."""

import sys

import pytest

from places import ROOT

sys.path.append(str(ROOT / "bench"))

from engine import benchmark, frames, pairs, quiet
from engine.spark import CommandError, PythonSpark, SparkProcess


def test_the_ratios_are_those_of_each_round():
    results = benchmark.Results("dataframes")

    def round_of(ours, noop):
        def one(nanos):
            return {"rows": 1000, "nanos": nanos, "first_nanos": 20_000_000}

        nanos = {"noop": noop, "supply": ours, "shuffled": 2 * ours, "mapInArrow": 8 * ours}
        return {(frame, way): one(nanos[way]) for frame in frames.FIGURES for way in frames.WAYS}

    rounds = quiet.Rounds([round_of(1000, 2000), round_of(2000, 3000), round_of(1000, 1000)])
    about = {"frames": list(frames.FIGURES), "version": "4.1.3", "paths": dict.fromkeys(frames.FIGURES, "columns")}
    frames.add_table(results, 1000, about, rounds)
    [table] = results.tables
    assert dict(zip(table.columns, table.rows[0])) == {
        "frame": "Parquet, 8 doubles",
        "path": "columns",
        "noop": "500.00 (333.33–1000.00)",
        "supply": "1000.00 (500.00–1000.00)",
        "shuffled": "500.00 (250.00–500.00)",
        "mapInArrow": "125.00 (62.50–125.00)",
        "× noop": "1.5 (1.0–2.0)",
        "× mapInArrow": "8.0 (8.0–8.0)",
        "first block s": "0.020 (0.020–0.020)",
    }
    assert {key: figure["value"] for key, figure in results.figures.items()} == {
        "df_write_first_block_s": 0.02,
        **{
            f"{name}_vs_{way}": ratio
            for name in frames.FIGURES.values()
            for way, ratio in [("noop", 1.5), ("arrow", 8)]
        },
    }


def test_a_way_that_a_frame_lacks_is_a_dash():
    results = benchmark.Results("dataframes")
    one = {"rows": 1000, "nanos": 1000, "first_nanos": 20_000_000}
    of_frame = {(frames.NOT_BY_ARROW, way): one for way in frames.WAYS if way != "mapInArrow"}
    about = {"frames": [frames.NOT_BY_ARROW], "version": "4.1.3", "paths": {frames.NOT_BY_ARROW: "rows"}}
    frames.add_table(results, 1000, about, quiet.Rounds([of_frame] * 2))
    row = dict(zip(results.tables[0].columns, results.tables[0].rows[0]))
    assert (row["mapInArrow"], row["× mapInArrow"]) == ("–", "–") and row["× noop"] == "1.0 (1.0–1.0)"


def test_a_way_that_fails_is_said_and_asked_once(capsys):
    asked = []

    class Process(SparkProcess):
        def round(self, **command):
            asked.append(command)
            raise CommandError("x: no worker")

    with Process("x") as process:
        assert process.attempt("a way", way=1) is None and process.attempt("a way", way=1) is None
    assert asked == [{"way": 1}] and capsys.readouterr().err == "bench: a way fails: x: no worker\n"


@pytest.mark.long
def test_every_way_has_all_rows_of_a_data_set(tmp_path):
    with (
        pairs.config_files(1, 8 << 20, 2 << 20) as pair,
        PythonSpark("dataframe_rank.py", tmp_path, 1024, 2, 500, 2) as rank,
    ):
        tally = rank.about["tally"]
        assert tally["samples"] == 500
        for way in ("supply", "parquet", "mapInArrow", "toArrow", "toLocalIterator", "batches in the rank"):
            received = rank.round(way=way, epochs=2, pair=pair, timeout=60)["received"]
            assert received == [tally, tally], way


@pytest.mark.long
def test_every_way_has_all_rows_of_every_frame(tmp_path):
    with (
        pairs.config_files(1, 8 << 20, 2 << 20) as pair,
        PythonSpark("frame_driver.py", tmp_path, 1024, 2, 500, 2) as driver,
    ):
        assert {*frames.FIGURES, frames.NOT_BY_ARROW} <= set(driver.about["frames"])
        assert {name for name, path in driver.about["paths"].items() if path == "columns"} == {
            name for name in driver.about["frames"] if name.startswith("Parquet")
        } | {"cached, 8 doubles"}
        for frame in driver.about["frames"]:
            for way in frames.WAYS:
                what = {"pair": pair, "timeout": 60} if way in frames.OURS else {}
                measured = driver.round(frame=frame, way=way, **what)
                assert (measured["rows"], measured.get("wrong", [])) == (500, []), (frame, way)
