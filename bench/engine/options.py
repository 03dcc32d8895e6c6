"""The flags, the same on every benchmark."""

import argparse
import os
import pathlib

from engine import floors, sizes


def _size(text):
    try:
        return sizes.parse(text)
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
    """Of one benchmark."""
    made = suite_parser(name, description)
    made.add_argument("--sizes", type=_sizes, metavar="SIZE,...", help="bytes of an element, as 784,3KiB,192KiB")
    made.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write everything measured to FILE")
    return made


def suite_parser(name, description):
    """What concerns every benchmark alike."""
    made = argparse.ArgumentParser(prog=f"bench/{name}", description=description)
    cores = os.cpu_count()
    made.add_argument(
        "--pairs",
        type=_counts,
        metavar="N,...",
        default=list(range(1, cores + 1)),
        help=f"numbers of pairs (default 1 to the number of cores: up to {cores} here)",
    )
    made.add_argument(
        "--bytes", type=_size, metavar="SIZE", help="data of one repetition (default 1GiB; quick: 128MiB)"
    )
    made.add_argument("--block", type=_size, metavar="SIZE", default=2 << 20, help="bytes of a block (default 2MiB)")
    made.add_argument("--ring", type=_size, metavar="SIZE", help="bytes of a ring (default 4 blocks)")
    made.add_argument(
        "--repetitions", type=int, metavar="N", help="measured rounds (default 21, drift: 4500; quick: 5, 112)"
    )
    made.add_argument("--warm-up", type=int, metavar="N", help="rounds before them, not counted (default 8; quick: 3)")
    made.add_argument(
        "--quick",
        action="store_true",
        help="less data, fewer rounds, without the longest cases: for a look, not for a figure",
    )
    made.add_argument("--heap", type=_size, metavar="SIZE", default=6 << 30, help="heap of Spark's JVM (default 6GiB)")
    made.add_argument(
        "--timeout", type=float, metavar="SECONDS", default=120.0, help="limit of each wait (default 120)"
    )
    made.add_argument(
        "--floor",
        type=floors.parse,
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="fail where the figure KEY of the summary is below VALUE; repeatable",
    )
    return made


def settle(options, default_sizes, default_repetitions):
    """Fills in what depends on other options."""
    options.sizes = options.sizes or default_sizes
    options.ring = options.ring or 4 * options.block
    options.bytes = options.bytes or (128 << 20 if options.quick else 1 << 30)
    options.repetitions = options.repetitions or (
        max(5, default_repetitions // 40) if options.quick else default_repetitions
    )
    options.warm_up = options.warm_up if options.warm_up is not None else (3 if options.quick else 8)
    return options
