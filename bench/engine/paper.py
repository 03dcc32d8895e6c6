"""This run beside figures 14 to 19 of the paper, whose nodes had two Xeon E5-2697 v3 and NVMe of 2.6 GB/s."""

from engine.figures import Table

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


def table(outputs):
    """
    The table, as a benchmark's JSON has it. It has the figures that this run measured.

    Here each of them has one pair, or if the paper has several processes, as many pairs as there were at most. A run
    without that number of pairs has no row.
    """
    made = Table(
        "GB/s of the paper and of this run: of all processes, and of each",
        ["figure, processes", "what", "paper GB/s", "here, pairs", "here GB/s", "paper, each", "here, each"],
        picture={"x": 0, "bars": [5, 6]},
    )
    for figure, what, processes, gb_s in FIGURES:
        here = dict(_speeds(outputs, figure))
        pairs = 1 if processes == 1 else max(here, default=0)
        if pairs in here:
            shared = figure in ONE_DISK_FIGURES
            divided = [_cell(gb_s, 1 if shared else processes), _cell(here[pairs], 1 if shared else pairs)]
            made.add(f"{figure}, {processes}", what, _cell(gb_s), pairs, _cell(here[pairs]), *divided)
    along = _along(outputs)
    if along:
        ours = f"{along[-1]:.2f}"
        made.add("19, last", "the last partition of a run that spills", "2.50", 1, ours, "2.50", ours)
    return made.as_json()


def _cell(gb_s, of=1):
    return "–" if gb_s is None else f"{gb_s / of:.2f}"


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
