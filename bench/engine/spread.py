"""Medians, and how far the rounds lie from them."""

import math
import statistics


def of(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": list(values)}


def percentile(ordered, share):
    """Of sorted values: the smallest that at least `share` of them do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def text(spread, digits=2):
    return f"{spread['median']:.{digits}f} ({spread['min']:.{digits}f}–{spread['max']:.{digits}f})"
