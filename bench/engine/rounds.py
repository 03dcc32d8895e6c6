"""From the rounds of all pairs to figures: each round has the limit and, right behind it, the cycle."""

from engine import spread


def _together(measured):
    """Seconds from the first start to the last end of what the pairs did at the same time."""
    start = min(m["start"] for m in measured)
    return (max(m["start"] + m["nanos"] for m in measured) - start) / 1e9


def figures(pairs, warm_up, data_bytes):
    """
    `data_bytes`, of the elements' data, are what one round moves over all pairs, in the limit and in the cycle alike. Round 0
    is the verified one; it and the warm-up are left out.
    """
    rounds = list(zip(*pairs))[1 + warm_up:]
    limit = [_together([pair["limit"] for pair in round_]) for round_ in rounds]
    cycle = [_together([pair["cycle"] for pair in round_]) for round_ in rounds]
    elements = sum(pair["cycle"]["elements"] for pair in rounds[0])
    return {
        "cycle_gb_s": spread.of([data_bytes / seconds / 1e9 for seconds in cycle]),
        "limit_gb_s": spread.of([data_bytes / seconds / 1e9 for seconds in limit]),
        "ratio": spread.of([l / c for l, c in zip(limit, cycle)]),
        "elements_per_s": spread.of([elements / seconds for seconds in cycle]),
        "allocated_bytes_per_element": spread.of([sum(p["allocated_bytes"] for p in r) / elements for r in rounds]),
        "waiting_for_rank": spread.of([sum(p["waited_for_rank"] for p in r) / sum(p["cycle"]["nanos"] for p in r) for r in rounds]),
    }
