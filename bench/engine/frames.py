"""Frames of many kinds: rows a second in steady epochs, beside Spark's own write to nothing and mapInArrow."""

import contextlib
import os
import subprocess
import tempfile

from engine import machine, pairs, quiet
from engine.figures import Table, spread, spread_text
from engine.spark import PythonSpark

ROWS, QUICK_ROWS = 2_000_000, 20_000
PARTITIONS = 4
HEAP = 3 << 30
ROUNDS = 6
# A Python with the PySpark of another version, whose mapInArrow is measured, too: of a virtual environment.
OTHER_PYTHON = os.environ.get("SUPPLY_BENCH_OTHER_PYSPARK")
OURS = ("supply", "shuffled")
# PySpark makes an object of each vector, which takes longer than all other frames together.
NOT_BY_ARROW = "cached, vector of 8"
FIGURES = {"Parquet, 8 doubles": "frames_doubles", "Parquet, lists of 1 to 15 ints": "frames_lists"}


def measure(options, results):
    rows = QUICK_ROWS if options.quick else ROWS
    with contextlib.ExitStack() as stack:
        shared = stack.enter_context(tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm"))
        pair = stack.enter_context(pairs.config_files(1, options.ring, options.block))
        sizes = (shared, HEAP >> 20, os.cpu_count(), rows, PARTITIONS)
        python = {"python": machine.SUPPLY_PYTHON, "environment": {"PYTHONPATH": machine.pyspark()}}
        driver = stack.enter_context(PythonSpark("frame_driver.py", machine.spark().jar, *sizes, **python))
        about, others = driver.about, []
        # The ways, each with the process that measures it.
        ways = dict.fromkeys(("noop", "supply", "shuffled", "mapInArrow"), driver)
        if OTHER_PYTHON:
            home = subprocess.check_output(
                [OTHER_PYTHON, "-c", "import pyspark; print(pyspark.__path__[0])"], text=True
            )
            own = {"PYSPARK_PYTHON": OTHER_PYTHON, "SPARK_HOME": home.strip(), "PYTHONPATH": ""}
            other = stack.enter_context(
                PythonSpark("frame_driver.py", "", *sizes, python=OTHER_PYTHON, environment=own)
            )
            ways[f"mapInArrow {other.about['version']}"] = other
            others.append(other.about)

        def one(number):
            measured = {}
            for frame in about["frames"]:
                for way, process in ways.items():
                    if frame == NOT_BY_ARROW and way.startswith("mapInArrow"):
                        continue
                    what = {"pair": pair, "timeout": options.timeout} if way in OURS else {}
                    taken = process.round(frame=frame, way=way.split()[0], **what)
                    if taken["rows"] != rows:
                        taken.setdefault("wrong", []).append(f"{taken['rows']} rows, not {rows}")
                    measured[frame, way] = taken
                    results.case({"frame": frame, "way": way, "round": number}, taken)
            return measured

        warm_up = min(options.warm_up, 1)
        wanted = min(options.repetitions, 1 if options.quick else ROUNDS)
        rounds = quiet.rounds(warm_up, wanted, one)
    results.judged({"frames": about["frames"], "warm_up": warm_up}, rounds)
    add_table(results, rows, about, list(ways), rounds)
    results.table(settings_table([about, *others]))


def add_table(results, rows, about, ways, rounds):
    baselines = [way for way in ways if way not in OURS]
    table = Table(
        f"DataFrames: {rows} rows of each kind to a rank that counts, million rows/s in steady epochs, "
        f"median (min–max), Spark {about['version']}",
        ["frame", "path", *ways, *(f"× {way}" for way in baselines), "first block s"],
        picture={"x": 0, "bars": [2 + ways.index(way) for way in ("noop", "supply", "mapInArrow")]},
    )
    for frame in about["frames"]:
        of = {way: [round_[frame, way] for round_ in rounds] for way in ways if (frame, way) in rounds[0]}
        speeds = {way: [one["rows"] / one["nanos"] * 1e3 for one in taken] for way, taken in of.items()}
        ratios = {
            way: {**spread([a / b for a, b in zip(speeds["supply"], speeds[way])]), "others": rounds.others}
            for way in baselines
            if way in of
        }
        first = {"first": spread([one["first_nanos"] / 1e9 for one in of["supply"]]), "others": rounds.others}
        table.add(
            frame,
            about["paths"][frame],
            *(spread_text(spread(speeds[way])) if way in of else "–" for way in ways),
            *(spread_text(ratios[way], 1) if way in of else "–" for way in baselines),
            spread_text(first["first"], 3),
        )
        if frame in FIGURES:
            for way, name in (("noop", "noop"), ("mapInArrow", "arrow")):
                results.figure(f"{FIGURES[frame]}_vs_{name}", {"ratio": ratios[way], "others": rounds.others})
            written = spread([a / b for a, b in zip(speeds["noop"], speeds["mapInArrow"])])["median"]
            note = f"Spark's own write to nothing is {written:.2g} times as fast as mapInArrow"
            results.notes[f"{FIGURES[frame]}_vs_arrow"] = note
        if frame == about["frames"][0]:
            results.figure("df_write_first_block_s", first, "first")
    results.table(table)


def settings_table(sparks):
    """What Spark was given for its Python. sparks: `about` of each."""
    table = Table(
        "DataFrames: settings of Spark for its Python; – is no setting of that Spark",
        ["setting", *(f"Spark {about['version']}" for about in sparks)],
    )
    for key in dict.fromkeys(key for about in sparks for key in about["settings"]):
        table.add(key, *(about["settings"].get(key, "–") for about in sparks))
    return table
