"""Jobs of MLlib and of MPI ranks, round by round in turn: of bench/offload and of make run-offload."""

import itertools
from typing import NamedTuple

from engine import machine, quiet
from engine.figures import Table, spread, spread_text
from engine.machine import BenchError
from engine.spark import PythonSpark

RANKS = 2
OURS = "ranks"
COLUMNS = ["job", "rows", "columns", "MLlib's way", "ranks s", "MLlib s", "MLlib / ranks"]
COLUMNS += ["processor time, MLlib / ranks", "answers apart"]
# A matrix of bench/offload, sent again before the last one is dropped, and what else the ranks and Python have.
RANKS_MEMORY = 4 << 30
LIBRARY = machine.ROOT / "build" / "mpi-client" / "libsupply_linalg.so"


class Case(NamedTuple):
    """job: of bench/py/offload_jobs.py. ways: MLlib's. key: of the figure."""

    job: str
    rows: int
    columns: int
    ways: tuple
    key: str


CASES = [
    Case("truncated_svd", 20_000, 500, ("computeSVD", "PCA"), "offload_svd_20k"),
    Case("kmeans", 20_000, 500, ("block",), "offload_kmeans"),
    Case("ridge", 20_000, 500, ("normal", "l-bfgs"), "offload_ridge"),
    Case("gram_vector", 20_000, 500, ("multiplyGramianMatrixBy",), "offload_gram_vector"),
    Case("truncated_svd", 20_000, 2_000, ("computeSVD",), "offload_svd_2000_columns"),
    Case("pca", 20_000, 2_000, ("PCA",), "offload_pca_2000_columns"),
    Case("truncated_svd", 200_000, 500, ("computeSVD", "PCA"), "offload_svd_200k"),
]
# Each routine once.
FIVE = [*CASES[:4], CASES[5]]


def started_driver(heap):
    """heap: bytes of Spark's JVM. Beside it the ranks need memory, and Python."""
    if machine.available_memory() < heap + RANKS_MEMORY:
        needed = (heap + RANKS_MEMORY) / 1e9
        raise BenchError(
            f"{needed:.1f} GB of memory are needed, and {machine.available_memory() / 1e9:.1f} GB are free"
        )
    if not LIBRARY.exists():
        raise BenchError(
            f"no {LIBRARY}: it needs OpenBLAS and SLEPc (on Debian: make packages-offload, as root), then make build"
        )
    environment = {"SUPPLY_SERVER": str(LIBRARY.with_name("supply-server")), "SUPPLY_LIBRARIES": str(LIBRARY.parent)}
    return PythonSpark("offload_driver.py", heap >> 20, RANKS, environment=environment)


def measure(driver, cases, rounds, warm_up, results):
    """Measures cases one after another; those of one matrix should be together. Adds the table and the figures."""
    blas = driver.about["blas"]
    print(f"MLlib's BLAS: {blas['class']} with {' '.join(blas['libraries'])}", flush=True)
    table = Table("Routines on a DataFrame: median (min–max); gram_vector: of one iteration of 50", COLUMNS)
    for (rows, columns), group in itertools.groupby(cases, key=lambda case: (case.rows, case.columns)):
        results.case({"rows": rows, "columns": columns}, driver.round(rows=rows, columns=columns))
        for case in group:
            figures = compare(driver, case, rounds, warm_up, results)
            add_rows(table, case, figures)
            # MLlib's faster way.
            better = min(case.ways, key=lambda way: figures[way]["s"]["median"])
            results.figure(case.key, figures[better])
            print(f"measured: {results.text(case.key)}", flush=True)
    results.table(table)


def compare(driver, case, rounds, warm_up, results):
    """Returns the figures of each way: its seconds, the ratios to ours, how far its answer is apart."""

    def one_round(number):
        one = driver.round(job=case.job, ways=case.ways, number=number)
        results.case({**case._asdict(), "round": number}, one)
        return one

    counted = quiet.rounds(warm_up, rounds, one_round)
    ours = spread([one["seconds"][OURS] for one in counted])
    return {OURS: {"s": ours}} | {
        way: {
            "s": spread([one["seconds"][way] for one in counted]),
            "ratio": spread([one["seconds"][way] / one["seconds"][OURS] for one in counted]),
            # A clock tick is 10 ms: a round may have none.
            "processor_ratio": sum(one["processor"][way] for one in counted)
            / max(0.01, sum(one["processor"][OURS] for one in counted)),
            "disturbed": counted.disturbed,
            "apart": max(one["differences"][way] for one in counted),
        }
        for way in case.ways
    }


def add_rows(made, case, figures):
    for way in case.ways:
        made.add(
            case.job,
            case.rows,
            case.columns,
            way,
            spread_text(figures[OURS]["s"], 3),
            spread_text(figures[way]["s"], 3),
            spread_text(figures[way]["ratio"], 1),
            f"{figures[way]['processor_ratio']:.1f}",
            f"{figures[way]['apart']:.1g}",
        )
