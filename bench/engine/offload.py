"""Jobs of MLlib and of MPI ranks, round by round in turn: of bench/offload and of make run-offload."""

import itertools
import os
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
    """job: of bench/py/offload_jobs.py. ways: MLlib's. with_vectors: it takes those of pyspark.ml.

    mllib: MLlib has the matrix, too.
    """

    job: str
    rows: int
    columns: int
    ways: tuple
    with_vectors: bool = False
    mllib: bool = True

    def matrix(self):
        """What the driver program makes of it."""
        return {"rows": self.rows, "columns": self.columns, "mllib": self.mllib}


def truncated_svd(rows, columns):
    return Case("truncated_svd", rows, columns, ("computeSVD", "PCA"))


def pca(rows, columns):
    return Case("pca", rows, columns, ("PCA",))


def kmeans(rows, columns):
    return Case("kmeans", rows, columns, ("row", "block"), with_vectors=True)


def ridge(rows, columns):
    return Case("ridge", rows, columns, ("normal", "l-bfgs"), with_vectors=True)


def gram_vector(rows, columns):
    """An iteration on a matrix that is there."""
    return Case("gram_vector", rows, columns, ("multiplyGramianMatrixBy",))


def gram_vector_sent(rows, columns):
    """The ranks get the matrix first."""
    return gram_vector(rows, columns)._replace(job="gram_vector_sent")


def sending(rows, columns):
    """ranks.matrix alone."""
    return Case("matrix", rows, columns, (), mllib=False)


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
    python_path = os.pathsep.join(
        [machine.pyspark(), *(str(machine.ROOT / folder) for folder in ("bench/py", "bench"))]
    )
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
    """Measures cases one after another; those of one matrix should be together. Yields each with its figures."""
    for about, group in itertools.groupby(cases, key=Case.matrix):
        of_matrix = list(group)
        answer = driver.round(**about, with_vectors=any(case.with_vectors for case in of_matrix))
        results.case({"matrix": about}, answer)
        for case in of_matrix:
            figures = compare(driver, case, rounds, warm_up, results)
            print(f"measured: {case.job}, {case.rows} × {case.columns}: {_ratios(case, figures)}", flush=True)
            yield case, figures
        results.case({"matrix": about, "released": True}, driver.round(release=True))


def _ratios(case, figures):
    ratios = [f"{way} / ranks {spread_text(figures[way]['ratio'], 1)}" for way in case.ways]
    return ", ".join([f"{spread_text(figures[OURS]['s'], 3)} s", *ratios])


def compare(driver, case, rounds, warm_up, results):
    """Returns the figures of each way: its seconds, the ratios to ours, how far its answer is apart."""

    def one_round(number):
        one = driver.round(job=case.job, ways=case.ways)
        results.case({**case._asdict(), "round": number, "load": os.getloadavg()[0]}, one)
        return one

    counted = quiet.rounds(warm_up, rounds, one_round)
    results.judged({"job": case.job, "warm_up": warm_up}, counted)
    ours = spread([one["seconds"][OURS] for one in counted])
    return {OURS: {"s": ours, "others": counted.others}} | {
        way: {
            "s": spread([one["seconds"][way] for one in counted]),
            "ratio": spread([one["seconds"][way] / one["seconds"][OURS] for one in counted]),
            # A clock tick is 10 ms: a round may have none.
            "processor_ratio": sum(one["processor"][way] for one in counted)
            / max(0.01, sum(one["processor"][OURS] for one in counted)),
            "others": counted.others,
            "apart": max(one["differences"][way] for one in counted),
        }
        for way in case.ways
    }


def better_way(case, figures):
    """MLlib's faster way."""
    return min(case.ways, key=lambda way: figures[way]["s"]["median"])


def better_ratio(case, figures):
    return figures[better_way(case, figures)]["ratio"]["median"]


def table(title):
    return Table(title, COLUMNS, picture={"x": 0, "group": 3, "bars": [4, 5]})


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
