"""From the rounds of all pairs to figures: each round has the limit and, right behind it, the cycle."""

from engine import spread


def _together(measured):
    """Seconds from the first start to the last end of what the pairs did at the same time."""
    start = min(m["start"] for m in measured)
    return (max(m["start"] + m["nanos"] for m in measured) - start) / 1e9


def _drift(values):
    """The last tenth over the first tenth: 1 where a long run stays as fast as it began."""
    tenth = max(1, len(values) // 10)
    return spread.of(values[-tenth:])["median"] / spread.of(values[:tenth])["median"]


def figures(pairs, warm_up, data_bytes):
    """
    `data_bytes` of the elements' data are what one cycle moves over all pairs; the limit says itself how much it has moved.
    Round 0 is the verified one; it and the warm-up are left out.
    """
    rounds = list(zip(*pairs))[1 + warm_up :]
    cycle = [data_bytes / _together([pair["cycle"] for pair in round_]) / 1e9 for round_ in rounds]
    limit = [
        sum(pair["limit"]["bytes"] for pair in round_) / _together([pair["limit"] for pair in round_]) / 1e9
        for round_ in rounds
    ]
    elements = sum(pair["cycle"]["elements"] for pair in rounds[0])
    return {
        "cycle_gb_s": spread.of(cycle),
        "limit_gb_s": spread.of(limit),
        "ratio": spread.of([c / l for c, l in zip(cycle, limit)]),
        "elements_per_s": spread.of([gb_s * 1e9 / data_bytes * elements for gb_s in cycle]),
        "limit_elements_per_s": spread.of(
            [sum(p["limit"]["elements"] for p in r) / _together([p["limit"] for p in r]) for r in rounds]
        ),
        "allocated_bytes_per_element": spread.of([sum(p["allocated_bytes"] for p in r) / elements for r in rounds]),
        "waiting_for_rank": spread.of(
            [sum(p["waited_for_rank"] for p in r) / sum(p["cycle"]["nanos"] for p in r) for r in rounds]
        ),
        "task_ns_per_element": spread.of([sum(p["cycle"]["cpu_nanos"] for p in r) / elements for r in rounds]),
        "limit_ns_per_element": spread.of(
            [sum(p["limit"]["cpu_nanos"] for p in r) / sum(p["limit"]["elements"] for p in r) for r in rounds]
        ),
        "drift": _drift(cycle),
    }
