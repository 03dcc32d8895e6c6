"""Jobs of MLlib and of MPI ranks, round by round in turn: of bench/offload and of make run-offload."""

import os
import statistics
from typing import NamedTuple

from engine import machine
from engine.figures import Table, spread, spread_text
from engine.machine import BenchError
from engine.spark import PythonSpark

RANKS = 2
OURS = "ranks"
COLUMNS = ["job", "rows", "columns", "MLlib's way", "ranks s", "MLlib s", "MLlib / ranks", "answers apart"]
LIBRARY = machine.ROOT / "build" / "mpi-client" / "libsupply_linalg.so"


class Case(NamedTuple):
    """job: of bench/py/offload_jobs.py. ways: MLlib's. with_vectors: it takes those of pyspark.ml."""

    job: str
    rows: int
    columns: int
    ways: tuple
    with_vectors: bool = False


def truncated_svd(rows, columns):
    return Case("truncated_svd", rows, columns, ("computeSVD", "PCA"))


def pca(rows, columns):
    return Case("pca", rows, columns, ("PCA",))


def kmeans(rows, columns):
    return Case("kmeans", rows, columns, ("row", "block"), with_vectors=True)


def ridge(rows, columns):
    return Case("ridge", rows, columns, ("normal", "l-bfgs"), with_vectors=True)


def gram_vector(rows, columns):
    return Case("gram_vector", rows, columns, ("multiplyGramianMatrixBy",))


def started_driver(heap):
    """heap: bytes."""
    if not LIBRARY.exists():
        raise BenchError(
            f"no {LIBRARY}: it needs OpenBLAS and SLEPc (on Debian: make packages-offload, as root), then make build"
        )
    python_path = os.pathsep.join([machine.pyspark(), str(machine.ROOT / "bench" / "py")])
    environment = {
        "PYTHONPATH": python_path,
        "PYSPARK_PYTHON": str(machine.SUPPLY_PYTHON),
        "SUPPLY_SERVER": str(LIBRARY.with_name("supply-server")),
        "SUPPLY_LIBRARIES": str(LIBRARY.parent),
    }
    return PythonSpark(
        "offload_driver.py",
        machine.spark().jar,
        heap >> 20,
        RANKS,
        python=machine.SUPPLY_PYTHON,
        environment=environment,
    )


def blas_text(driver):
    blas = driver.about["blas"]
    return f"MLlib's BLAS: {blas['class']} with {' '.join(blas['libraries'])}"


def measure(driver, cases, rounds, warm_up, results):
    """Measures cases one after another. Those of one matrix should be together. Yields each with its figures."""
    shape = None
    for case in cases:
        if shape != (case.rows, case.columns):
            shape = (case.rows, case.columns)
            of_matrix = [one for one in cases if (one.rows, one.columns) == shape]
            driver.round(rows=case.rows, columns=case.columns, with_vectors=any(one.with_vectors for one in of_matrix))
        yield case, compare(driver, case, rounds, warm_up, results)


def compare(driver, case, rounds, warm_up, results):
    """Returns the figures of each way: its seconds, the ratio to ours, how far its answer is apart."""
    measured = []
    for number in range(warm_up + rounds):
        one = driver.round(job=case.job, ways=case.ways)
        results.case({**case._asdict(), "round": number, "load": os.getloadavg()[0]}, one)
        measured.append(one)
    counted = measured[warm_up:]
    ours = [one["seconds"][OURS] for one in counted]
    return {
        way: {
            "ours_s": spread(ours),
            "theirs_s": spread([one["seconds"][way] for one in counted]),
            "ratio": spread([one["seconds"][way] / one["seconds"][OURS] for one in counted]),
            "apart": max(one["differences"][way] for one in counted),
        }
        for way in case.ways
    }


def better_way(figures):
    """MLlib's faster way."""
    return min(figures, key=lambda way: statistics.median(figures[way]["theirs_s"]["values"]))


def table(title):
    return Table(title, COLUMNS, picture={"x": 0, "group": 3, "bars": [4, 5]})


def add_rows(made, case, figures):
    for way, of_way in figures.items():
        made.add(
            case.job,
            case.rows,
            case.columns,
            way,
            spread_text(of_way["ours_s"], 3),
            spread_text(of_way["theirs_s"], 3),
            spread_text(of_way["ratio"], 1),
            f"{of_way['apart']:.1g}",
        )
