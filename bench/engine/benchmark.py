"""What every benchmark does around its measurement: options, JSON, floors and the exit status."""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

from engine import machine
from engine.figures import interval, parse_size
from engine.machine import BenchError

DEFAULT_PAIRS = list(range(1, os.cpu_count() + 1))


def exit_on_sigterm():
    """Makes SIGTERM unwind the program like an exception, so that it ends what it has started."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def parse_floor(text):
    key, equals, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE with a number") from None


def missed_floors(floors, figures):
    """Returns a line for each floor that was missed or has no figure."""
    lines = []
    for key, floor in floors:
        if key not in figures:
            lines.append(f"--floor {key}: no such figure in this run: {', '.join(sorted(figures)) or 'there are none'}")
        elif figures[key]["value"] < floor:
            lines.append(f"{key} is {figures[key]['value']:.4g}, below its floor {floor:g}")
    return lines


def _size(text):
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _sizes(text):
    return [_size(word) for word in text.split(",")]


def _counts(text):
    counts = [int(word) for word in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("a number of pairs is at least 1")
    return counts


def parser(name, description):
    """The options of one benchmark."""
    made = suite_parser(name, description)
    made.add_argument("--sizes", type=_sizes, metavar="SIZE,...", help="bytes of an element, as 784,3KiB,192KiB")
    made.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write everything measured to FILE")
    return made


def suite_parser(name, description):
    """The options that every benchmark and bench/run share."""
    made = argparse.ArgumentParser(prog=f"bench/{name}", description=description)
    add = made.add_argument
    add(
        "--pairs",
        type=_counts,
        metavar="N,...",
        help=f"numbers of pairs (default 1 to the number of cores: up to {len(DEFAULT_PAIRS)} here; quick: 1)",
    )
    add("--bytes", type=_size, metavar="SIZE", help="data of one repetition (default 1GiB; quick: 512MiB)")
    add("--block", type=_size, metavar="SIZE", default=2 << 20, help="bytes of a block (default 2MiB)")
    add("--ring", type=_size, metavar="SIZE", help="bytes of a ring (default 4 blocks)")
    add("--repetitions", type=int, metavar="N", help="measured rounds (default 21; quick: 9)")
    add("--warm-up", type=int, metavar="N", help="rounds before them, not counted (default 8; quick: 12)")
    add("--quick", action="store_true", help="less data, fewer rounds and one pair, without the longest cases")
    add("--heap", type=_size, metavar="SIZE", default=6 << 30, help="heap of Spark's JVM (default 6GiB)")
    add("--timeout", type=float, metavar="SECONDS", default=120.0, help="limit of each wait (default 120)")
    add(
        "--floor",
        type=parse_floor,
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="fail if the figure KEY is below VALUE; repeatable",
    )
    return made


def settle(options, default_sizes):
    """Fills in the defaults that depend on other options. `reduced`: those with which less than usual is measured."""
    usual = {"bytes": 1 << 30, "repetitions": 21, "warm_up": 8}
    quick = {"bytes": 512 << 20, "repetitions": 9, "warm_up": 12}
    given = {key: getattr(options, key) for key in usual}
    options.reduced = [key for key, value in given.items() if value is not None and value < usual[key]]
    for key, value in given.items():
        if value is None:
            setattr(options, key, (quick if options.quick else usual)[key])
    options.sizes = options.sizes or default_sizes
    options.pairs = options.pairs or (DEFAULT_PAIRS[:1] if options.quick else DEFAULT_PAIRS)
    options.ring = options.ring or 4 * options.block
    return options


class Results:
    """The results of one benchmark."""

    def __init__(self, name):
        self.name = name
        self.tables = []
        self.figures = {}
        self.cases = []
        self.wrong = []

    def case(self, about, measured):
        """Adds a measured configuration, and what is wrong with its data."""
        self.cases.append({**about, **measured})
        self.wrong += [f"{self.name} {about}: {line}" for line in measured.get("wrong", [])]

    def figure(self, key, measured, name="ratio"):
        """Adds the median of a spread, with what its rounds say about it."""
        values = measured[name]["values"]
        about = {"interval": interval(values), "rounds": len(values), "disturbed": measured["disturbed"]}
        about["values"] = values
        self.figures[key] = {"value": measured[name]["median"], **about}

    def value(self, key, value):
        """Adds a figure that is no median."""
        self.figures[key] = {"value": value, "interval": None, "rounds": None, "disturbed": 0}

    def text(self, key):
        """The line of a figure."""
        figure = self.figures[key]
        line = f"{key} {figure['value']:.4g}"
        if figure["interval"]:
            line += " (95 %: {:.4g}–{:.4g})".format(*figure["interval"])
        if figure["disturbed"]:
            line += f", others disturbed {figure['disturbed']} of {figure['rounds']} rounds"
        return line

    def table(self, table):
        self.tables.append(table)
        print(table.text(), end="\n\n", flush=True)

    def as_json(self, options, about):
        return {
            "benchmark": self.name,
            "machine": about,
            "options": {key: value for key, value in vars(options).items() if key not in ("json", "floor")},
            "figures": self.figures,
            "verified": not self.wrong,
            "wrong": self.wrong,
            "tables": [vars(table) for table in self.tables],
            "cases": self.cases,
        }


def main(name, description, measure, default_sizes):
    """Runs `measure(options, results)` with the command line's options. The exit status is the verdict."""
    machine.run_in_venv()
    exit_on_sigterm()
    options = settle(parser(name, description).parse_args(), default_sizes)
    machine.enter_group(name)
    results = Results(name)
    machine.OUTPUT.mkdir(parents=True, exist_ok=True)
    about, start = machine.describe(), time.monotonic()
    try:
        measure(options, results)
    except BenchError as error:
        sys.exit(f"bench/{name}: error: {error}")
    about["seconds"] = time.monotonic() - start
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results.as_json(options, about), indent=1) + "\n", encoding="utf-8")
    for key in sorted(results.figures):
        print(results.text(key))
    failures = results.wrong + missed_floors(options.floor, results.figures)
    for line in failures:
        print(f"bench/{name}: error: {line}", file=sys.stderr)
    sys.exit(1 if failures else 0)
