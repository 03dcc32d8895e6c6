"""More columns than MLlib's PCA has memory for: the ranks take Lanczos's method, which SLEPc has."""

import sys

from engine import offload, offload_memory
from engine.figures import Table, spread_text

ROWS, COLUMNS = 2_000, 40_000
ROUNDS, WARM_UP = 1, 1
CASES = [offload.Case("truncated_svd", ROWS, COLUMNS, ("computeSVD",)), offload.Case("pca", ROWS, COLUMNS, ())]


def measure(driver, results):
    """Adds the table, if there is memory for it."""
    if b"SVDCreate" not in offload.LIBRARY.read_bytes():
        print("bench/offload: many columns skipped: libsupply_linalg was built without SLEPc", file=sys.stderr)
        return
    cases = offload_memory.affordable(CASES)
    if not cases:
        return
    table = Table(f"{ROWS} × {COLUMNS}, k = 20", ["job", "ranks s", "MLlib s"])
    for case, figures in offload.measure(driver, cases, ROUNDS, WARM_UP, results):
        theirs = [f"{way} {spread_text(figures[way]['s'])}" for way in case.ways]
        # A matrix of covariances, in the driver's memory and in a task's.
        needs = f"not run: its covariances need {8 * case.columns**2 / 1e9:.1f} GB, twice"
        table.add(case.job, spread_text(figures[offload.OURS]["s"]), *(theirs or [needs]))
    results.table(table)
