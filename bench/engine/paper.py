"""Figures 14 to 19 of the paper, and this run's beside them."""

# Their processes share one disk, so GB/s of each are not divided by them.
ONE_DISK_FIGURES = {"18"}
# Figure, what it shows, processes and their GB/s together; None: the paper has a chart without this number.
FIGURES = [
    ("14", "ranks copy blocks out of shared memory", 1, 6.57),
    ("14", "ranks copy blocks out of shared memory", 5, 33.55),
    ("15", "tasks write cached elements", 1, 4.8),
    ("15", "tasks write cached elements", 5, 21.55),
    ("16", "the cycle, one node", 1, None),
    ("17", "the cycle, two nodes", 10, 26.2),
    ("18", "the cycle of spilled data, which has one disk", 8, 2.5),
]


def rows(outputs):
    """
    The figures that this run measured, as Results.publish() takes them.

    Here each of them has one pair, or if the paper has several processes, as many pairs as there were at most. A run
    without that number of pairs has no row.
    """
    made = []
    for figure, what, processes, gb_s in FIGURES:
        here = dict(_speeds(outputs, figure))
        pairs = 1 if processes == 1 else max(here, default=0)
        if pairs in here:
            shared = figure in ONE_DISK_FIGURES
            theirs = _speed(gb_s, processes, "process", "processes", shared)
            ours = _speed(here[pairs], pairs, "pair", "pairs", shared)
            made.append([f"the paper, figure {figure}", what, theirs, ours])
    along = _along(outputs)
    if along:
        made.append(
            ["the paper, figure 19", "the last partition of a run that spills", "2.50 GB/s", f"{along[-1]:.2f} GB/s"]
        )
    return made


def _speed(gb_s, count, name, plural, shared):
    """shared: GB/s of each would say nothing."""
    if gb_s is None:
        return "a chart without numbers"
    each = f", {gb_s / count:.2f} each" if count > 1 and not shared else ""
    return f"{count} {name if count == 1 else plural}: {gb_s:.2f} GB/s{each}"


def _speeds(outputs, figure):
    """Pairs (of pairs of task and rank, and of what they move together)."""
    cases = {output["benchmark"]: output["cases"] for output in outputs}
    if figure == "14":
        copies = [case for case in cases.get("read", []) if case["operation"] == "copy"]
        largest = max((case["ring_bytes"] for case in copies), default=0)
        return [(c["ranks"], c["in_place_gb_s"]["median"]) for c in copies if c["ring_bytes"] == largest]
    if figure == "17":
        return [(2 * case["ranks_a_node"], case["two_nodes_gb_s"]["median"]) for case in cases.get("nodes", [])]
    name = {"15": "write", "16": "cycle", "18": "spilled"}[figure]
    plain = [case for case in cases.get(name, []) if case.get("element_bytes") == 192 << 10 and not _swept(case)]
    return [(case["pairs"], case["cycle_gb_s"]["median"]) for case in plain]


def _swept(case):
    """Whether the case is of one of the other tables of `cycle`."""
    return any(key in case for key in ("swept", "form", "partitions"))


def _along(outputs):
    """GB/s of each partition along the run that spills."""
    tables = [table for output in outputs if output["benchmark"] == "spilled" for table in output["tables"][1:]]
    return [float(row[1]) for table in tables for row in table["rows"]]
