"""The experiments of Alchemist's paper at the size of one machine: products, conjugate gradients, truncated SVD."""

from typing import NamedTuple

from engine import offload, offload_memory
from engine.figures import Table, spread_text


class Experiment(NamedTuple):
    """name: of a case, in the picture. theirs: of Alchemist, on Cori."""

    title: str
    cases: list
    name: object
    theirs: str


EXPERIMENTS = [
    Experiment(
        "Matrix products, rows to rows, the right side sent too",
        [
            offload.multiply(*shape)
            for shape in ((20_000, 500, 500), (50_000, 500, 100), (10_000, 1_000, 2_000), (4_000, 4_000, 4_000))
        ],
        lambda case: f"{case.rows}×{case.columns}×{case.right_columns}",
        "10,000 × 10,000 × 10,000 on one node: 14.7 s with sending and fetching, 10.9 times Spark",
    ),
    Experiment(
        "Conjugate gradients on random features, to 1e-8",
        [offload.conjugate_gradient(20_000, 100, features) for features in (500, 1000, 2000)],
        lambda case: f"{case.rows}×{case.random_features}",
        "speech data: an order of magnitude faster than Spark",
    ),
    Experiment(
        "Truncated SVD, k = 20",
        [offload.truncated_svd(rows, 500) for rows in (20_000, 50_000, 100_000, 200_000)],
        lambda case: f"{case.rows}×{case.columns}",
        "25 to 400 GB: all, of which Spark ended 25 GB in 30 min; ocean data: up to 7.9 times Spark",
    ),
]
SPARK_MPI = "3.1 to 17.7 times Spark, with all overheads"
SENDING = "5,120,000 × 10,000: 0.3 to 0.4 GB/s a node, over sockets"


def add_table(results, title, measured, name):
    """measured: pairs of a case and its figures. name: of a case, in the picture."""
    ways = measured[0][0].ways
    columns = ["size", "ranks s", *(f"{way} s" for way in ways), *(f"{way} / ranks" for way in ways)]
    table = Table(title, columns, picture={"x": 0, "bars": list(range(1, 2 + len(ways)))})
    for case, figures in measured:
        seconds = [spread_text(figures[way]["s"], 3) for way in (offload.OURS, *ways)]
        table.add(name(case), *seconds, *(spread_text(figures[way]["ratio"], 1) for way in ways))
    results.table(table)


def measure(driver, divided, known, rounds, warm_up, results):
    """Measures what this machine has memory for. divided: the rows, for a quick check. known: figures of cases."""
    for experiment in EXPERIMENTS:
        cases = offload_memory.affordable([case._replace(rows=case.rows // divided) for case in experiment.cases])
        if not cases:
            continue
        unknown = [case for case in cases if case not in known]
        of_case = {**known, **dict(offload.measure(driver, unknown, rounds, warm_up, results))}
        measured = [(case, of_case[case]) for case in cases]
        add_table(results, experiment.title, measured, experiment.name)
        case, figures = measured[-1]
        way = offload.better_way(case, figures)
        seconds, ratio = figures[offload.OURS]["s"], figures[way]["ratio"]
        ours = f"{experiment.name(case)}: {spread_text(seconds)} s, {spread_text(ratio, 1)} times {way}"
        results.publish("Alchemist", experiment.title, experiment.theirs, ours)


def publish_sending(case, gb_s, results):
    """Adds what Alchemist took to send a matrix, and ours. gb_s: of ranks.matrix, for this case."""
    ours = f"{case.rows:,} × {case.columns}: {spread_text(gb_s)} GB/s, through memory"
    results.publish("Alchemist", "Sending a matrix", SENDING, ours)


def publish_routines(ratios, results):
    """Adds what Spark+MPI gained, and ours. ratios: of MLlib's faster way to ours, for each routine with sending."""
    ours = f"dense routines: {min(ratios):.1f} to {max(ratios):.1f} times MLlib's faster way, with sending"
    results.publish("Spark+MPI", "Four sparse graph and machine learning applications", SPARK_MPI, ours)
