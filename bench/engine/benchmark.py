"""What every benchmark does around its measurement: options, JSON, floors and the exit status."""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

from engine import bandwidth, machine, quiet
from engine.figures import interval, parse_size
from engine.machine import BenchError

DEFAULT_PAIRS = list(range(1, os.cpu_count() + 1))
DEFAULT_BYTES = 1 << 30
DEFAULT_WARM_UP = 8


def exit_on_sigterm():
    """Makes SIGTERM unwind the program like an exception, so that it ends what it has started."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def parse_floor(text):
    key, equals, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE with a number") from None


def missed_floors(floors, summary):
    """Returns a line for each floor that was missed or has no figure."""
    lines = []
    for key, floor in floors:
        if key not in summary:
            lines.append(f"--floor {key}: no such figure in this run: {', '.join(sorted(summary)) or 'there are none'}")
        elif summary[key] < floor:
            lines.append(f"{key} is {summary[key]:.4g}, below its floor {floor:g}")
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
    made.add_argument(
        "--pairs",
        type=_counts,
        metavar="N,...",
        help=f"numbers of pairs (default 1 to the number of cores: up to {len(DEFAULT_PAIRS)} here; quick: 1)",
    )
    made.add_argument(
        "--bytes", type=_size, metavar="SIZE", help="data of one repetition (default 1GiB; quick: 512MiB)"
    )
    made.add_argument("--block", type=_size, metavar="SIZE", default=2 << 20, help="bytes of a block (default 2MiB)")
    made.add_argument("--ring", type=_size, metavar="SIZE", help="bytes of a ring (default 4 blocks)")
    made.add_argument("--repetitions", type=int, metavar="N", help="measured rounds (default 21; quick: 9)")
    made.add_argument("--warm-up", type=int, metavar="N", help="rounds before them, not counted (default 8; quick: 12)")
    made.add_argument(
        "--quick", action="store_true", help="half of the data, fewer rounds and one pair, without the longest cases"
    )
    made.add_argument("--heap", type=_size, metavar="SIZE", default=6 << 30, help="heap of Spark's JVM (default 6GiB)")
    made.add_argument(
        "--timeout", type=float, metavar="SECONDS", default=120.0, help="limit of each wait (default 120)"
    )
    made.add_argument(
        "--floor",
        type=parse_floor,
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="fail if the figure KEY of the summary is below VALUE; repeatable",
    )
    return made


def _reduced(options, default_sizes, default_repetitions):
    """The options of the command line with which less than usual is measured."""
    least = {"bytes": DEFAULT_BYTES, "repetitions": default_repetitions, "warm_up": DEFAULT_WARM_UP}
    reduced = [
        name for name, usual in least.items() if getattr(options, name) is not None and getattr(options, name) < usual
    ]
    usual_lists = {"pairs": DEFAULT_PAIRS, "sizes": default_sizes}
    reduced += [name for name, usual in usual_lists.items() if not set(usual) <= set(getattr(options, name) or usual)]
    return ["--" + name.replace("_", "-") for name in reduced]


def settle(options, default_sizes, default_repetitions):
    """Fills in the defaults that depend on other options."""
    options.reduced = _reduced(options, default_sizes, default_repetitions)
    options.sizes = options.sizes or default_sizes
    options.pairs = options.pairs or (DEFAULT_PAIRS[:1] if options.quick else DEFAULT_PAIRS)
    options.ring = options.ring or 4 * options.block
    options.bytes = options.bytes or (512 << 20 if options.quick else DEFAULT_BYTES)
    options.repetitions = options.repetitions or (9 if options.quick else default_repetitions)
    options.warm_up = options.warm_up if options.warm_up is not None else (12 if options.quick else DEFAULT_WARM_UP)
    return options


def changed(options, **values):
    """A copy of the options, so that the JSON and other cases keep those of the command line."""
    return argparse.Namespace(**{**vars(options), **values})


class Results:
    """The results of one benchmark. `notes` says where the time goes, or the bound, if a figure misses its target."""

    def __init__(self, name):
        self.name = name
        self.tables = []
        self.summary = {}
        self.figures = {}
        self.notes = {}
        self.cases = []
        self.wrong = []

    def case(self, about, measured):
        """Adds a measured configuration, and what is wrong with its data."""
        self.cases.append({**about, **measured})
        self.wrong += [f"{self.name} {about}: {line}" for line in measured.get("wrong", [])]

    def judged(self, about, rounds):
        """Adds which rounds (quiet.Rounds) of cases count. A round's number is its place, after the warm-up."""
        shares = [{"others": one["others"], "counts": one["counts"]} for one in rounds.measured]
        self.cases.append({**about, "rounds": shares})

    def figure(self, key, measured, name="ratio"):
        """Adds the median of a spread to the summary, with what its rounds say about it."""
        values = measured[name]["values"]
        self._add(key, measured[name]["median"], interval(values), len(values), measured.get("others"))

    def ratio_of_medians(self, key, ours, theirs, others=None):
        """Adds the ratio of two spreads that were not measured in the same rounds."""
        values = ours["values"], theirs["values"]
        self._add(key, ours["median"] / theirs["median"], interval(*values), sum(map(len, values)), others)

    def _add(self, key, value, interval_, rounds, others):
        self.summary[key] = value
        marked = None if others is None else sum(share > quiet.LIMIT for share in others)
        self.figures[key] = {"interval": interval_, "rounds": rounds, "marked": marked}

    def text(self, key):
        """The line of a figure."""
        line, about = f"{key} {self.summary[key]:.4g}", self.figures.get(key)
        if about and about["interval"]:
            line += " (95 %: {:.4g}–{:.4g})".format(*about["interval"])
        if about and about["marked"]:
            line += f", others disturbed {about['marked']} of {about['rounds']} rounds"
        return line

    def table(self, table):
        self.tables.append(table)
        print(table.text(), end="\n\n", flush=True)

    def as_json(self, options, about):
        return {
            "benchmark": self.name,
            "machine": about,
            "options": {key: value for key, value in vars(options).items() if key not in ("json", "floor")},
            "summary": self.summary,
            "figures": self.figures,
            "notes": self.notes,
            "verified": not self.wrong,
            "wrong": self.wrong,
            "tables": [table.as_json() for table in self.tables],
            "cases": self.cases,
        }


def main(name, description, measure, default_sizes, default_repetitions=21):
    """Runs `measure(options, results)` with the command line's options. The exit status is the verdict."""
    machine.run_in_venv()
    exit_on_sigterm()
    options = settle(parser(name, description).parse_args(), default_sizes, default_repetitions)
    results = Results(name)
    machine.OUTPUT.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    about = {**machine.describe(), "gb_s": bandwidth.measure(), "stolen_before": quiet.stolen_seconds()}
    try:
        measure(options, results)
    except BenchError as error:
        sys.exit(f"bench/{name}: error: {error}")
    about["stolen_seconds"] = quiet.stolen_seconds() - about.pop("stolen_before")
    about["seconds"] = time.monotonic() - start
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results.as_json(options, about), indent=1) + "\n", encoding="utf-8")
    for key in sorted(results.summary):
        print(results.text(key))
    failures = results.wrong + missed_floors(options.floor, results.summary)
    for line in failures:
        print(f"bench/{name}: error: {line}", file=sys.stderr)
    sys.exit(1 if failures else 0)
