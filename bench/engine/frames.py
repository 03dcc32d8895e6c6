"""Frames of many kinds: rows a second in steady epochs, beside Spark's own write to nothing and mapInArrow."""

import os
import tempfile

from engine import pairs, quiet
from engine.figures import Table, spread, spread_text
from engine.spark import PythonSpark

ROWS, QUICK_ROWS = 2_000_000, 20_000
PARTITIONS = 4
HEAP = 3 << 30
ROUNDS = 5
OURS = ("supply", "shuffled")
# With their names in figures.
BASELINES = {"noop": "noop", "mapInArrow": "arrow"}
# Of bench/readers.
SHARED = "cached, 8 doubles"
WAYS = ("noop", *OURS, "mapInArrow")
# PySpark makes an object of each vector, which takes longer than all other frames together.
NOT_BY_ARROW = "cached, vector of 8"
FIGURES = {"Parquet, 8 doubles": "frames_doubles", "Parquet, lists of 1 to 15 ints": "frames_lists"}


def measure(options, results):
    rows = QUICK_ROWS if options.quick else ROWS
    with (
        tempfile.TemporaryDirectory(prefix="supply-bench-", dir="/dev/shm") as shared,
        pairs.config_files(1, options.ring, options.block) as pair,
        PythonSpark("frame_driver.py", shared, HEAP >> 20, os.cpu_count(), rows, PARTITIONS) as driver,
    ):

        def one(number):
            measured = {}
            for frame in driver.about["frames"]:
                for way in quiet.turns(WAYS, number):
                    if frame == NOT_BY_ARROW and way == "mapInArrow":
                        continue
                    what = {"pair": pair, "timeout": options.timeout} if way in OURS else {}
                    taken = (
                        driver.attempt(f"{way} of {frame}", frame=frame, way=way)
                        if way == "mapInArrow"
                        else driver.round(frame=frame, way=way, **what)
                    )
                    if taken is None:
                        continue
                    if taken["rows"] != rows:
                        taken.setdefault("wrong", []).append(f"{taken['rows']} rows, not {rows}")
                    measured[frame, way] = taken
                    results.case({"frame": frame, "way": way, "round": number}, taken)
            return measured

        wanted = min(options.repetitions, 1 if options.quick else ROUNDS)
        rounds = quiet.rounds(min(options.warm_up, 1), wanted, one)
        add_table(results, rows, driver.about, rounds)


def add_table(results, rows, about, rounds):
    table = Table(
        f"DataFrames: {rows} rows of each kind to a rank that counts, million rows/s in steady epochs, "
        f"median (min–max), Spark {about['version']}",
        ["frame", "path", *WAYS, *(f"× {way}" for way in BASELINES), "first block s"],
    )
    for frame in about["frames"]:
        in_all = [way for way in WAYS if all((frame, way) in round_ for round_ in rounds)]
        of = {way: [round_[frame, way] for round_ in rounds] for way in in_all}
        absent = "–" if frame == NOT_BY_ARROW else "fails"
        speeds = {way: [one["rows"] / one["nanos"] * 1e3 for one in taken] for way, taken in of.items()}
        ratios = {way: spread([a / b for a, b in zip(speeds["supply"], speeds[way])]) for way in BASELINES if way in of}
        first = spread([one["first_nanos"] / 1e9 for one in of["supply"]])
        table.add(
            frame,
            about["paths"][frame],
            *(spread_text(spread(speeds[way])) if way in of else absent for way in WAYS),
            *(spread_text(ratios[way], 1) if way in of else "–" for way in BASELINES),
            spread_text(first, 3),
        )
        if frame in FIGURES:
            for way in ratios:
                measured = {"ratio": ratios[way], "disturbed": rounds.disturbed}
                results.figure(f"{FIGURES[frame]}_vs_{BASELINES[way]}", measured)
        if frame == about["frames"][0]:
            results.figure("df_write_first_block_s", {"first": first, "disturbed": rounds.disturbed}, "first")
    results.table(table)
