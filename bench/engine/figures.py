"""Sizes, medians with their ranges, and tables."""

import math
import re
import statistics

# A bootstrap of fewer values claims more than they say.
FEWEST_VALUES = 6
_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def parse_size(text):
    match = re.fullmatch(r"([1-9][0-9]*)(|KiB|MiB|GiB)", text)
    if not match:
        raise ValueError(f"'{text}' is not a size: write it as 784, 3KiB, 16MiB or 1GiB")
    return int(match[1]) * _UNITS[match[2]]


def size_text(size):
    for unit in ("GiB", "MiB", "KiB"):
        if size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]} {unit}"
    return f"{size} B"


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": list(values)}


def percentile(ordered, share):
    """The smallest of sorted values that at least `share` of them do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def interval(values, against=(1,), confidence=0.95, resamples=10_000):
    """
    The bootstrap interval of the median, or of its ratio to another one's: two values, the same in every call.

    None if either has fewer than FEWEST_VALUES values. It is the spread within one run: other runs may differ by more.
    """
    if len(values) < FEWEST_VALUES or 1 < len(against) < FEWEST_VALUES:
        return None
    # Only the environment of the benchmarks has it.
    import numpy

    random = numpy.random.default_rng(0)
    ours, theirs = (numpy.median(random.choice(of, (resamples, len(of))), axis=1) for of in (values, against))
    tail = 50 * (1 - confidence)
    return numpy.percentile(ours / theirs, [tail, 100 - tail]).tolist()


def spread_text(values, digits=2):
    return f"{values['median']:.{digits}f} ({values['min']:.{digits}f}–{values['max']:.{digits}f})"


def leading_number(cell):
    """The median, at the start of a table's cell."""
    match = re.match(r"-?[0-9.]+", cell)
    return float(match[0]) if match else 0.0


def rates(measured):
    """The cells of a cycle's GB/s, of its baseline's, and of their ratio."""
    return [spread_text(measured[key]) for key in ("cycle_gb_s", "baseline_gb_s", "ratio")]


class Table:
    def __init__(self, title, columns, picture=None):
        """`picture` says which columns report.draw() draws."""
        self.title = title
        self.columns = columns
        self.rows = []
        self.picture = picture

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def text(self):
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows)]
        lines = [self.title, "  ".join(cell.ljust(width) for cell, width in zip(self.columns, widths)).rstrip()]
        lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in self.rows]
        return "\n".join(lines)

    def as_json(self):
        return {"title": self.title, "columns": self.columns, "rows": self.rows, "picture": self.picture}

    def markdown(self):
        lines = [" | ".join(self.columns), " | ".join("---" for _ in self.columns)]
        lines += [" | ".join(row) for row in self.rows]
        return "\n".join(f"| {line} |" for line in lines)
