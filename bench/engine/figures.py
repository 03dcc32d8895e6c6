"""Sizes, medians with their ranges, and tables."""

import re
import statistics

# A bootstrap of fewer values claims more than they say.
FEWEST_VALUES = 5
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


def interval(values, confidence=0.95, resamples=10_000):
    """
    The bootstrap interval of the median: two values, the same in every call.

    None if there are fewer than FEWEST_VALUES. It is the spread within one run: other runs may differ by more.
    """
    if len(values) < FEWEST_VALUES:
        return None
    # Only the environment of the benchmarks has it.
    import numpy

    medians = numpy.median(numpy.random.default_rng(0).choice(values, (resamples, len(values))), axis=1)
    tail = 50 * (1 - confidence)
    return numpy.percentile(medians, [tail, 100 - tail]).tolist()


def spread_text(values, digits=2):
    return f"{values['median']:.{digits}f} ({values['min']:.{digits}f}–{values['max']:.{digits}f})"


def rates(measured):
    """The cells of a cycle's GB/s, of its baseline's, and of their ratio."""
    return [spread_text(measured[key]) for key in ("cycle_gb_s", "baseline_gb_s", "ratio")]


class Table:
    def __init__(self, title, columns, rows=()):
        self.title = title
        self.columns = columns
        self.rows = list(rows)

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def text(self):
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows)]
        lines = [self.title, "  ".join(cell.ljust(width) for cell, width in zip(self.columns, widths)).rstrip()]
        lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in self.rows]
        return "\n".join(lines)

    def as_json(self):
        return {"title": self.title, "columns": self.columns, "rows": self.rows}

    def markdown(self):
        lines = [" | ".join(self.columns), " | ".join("---" for _ in self.columns)]
        lines += [" | ".join(row) for row in self.rows]
        return "\n".join(f"| {line} |" for line in lines)
