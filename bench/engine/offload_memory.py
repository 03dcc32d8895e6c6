"""How much memory the cases of bench/offload need. If there is too little, the kernel ends Spark's JVM."""

from engine import machine

GIB = 1 << 30
# Spark itself, and what MLlib allocates beside its matrices.
BASE_HEAP = 2 * GIB
# Spark keeps data in about half of its heap.
HEAP_OF_DATA = 2
# Python on the driver, Spark's Python that makes the data, the ranks' rings, and what others begin.
REST = 2 * GIB


def of_spark(case):
    """Bytes of the matrix in Spark's memory: the DataFrame, and MLlib's forms."""
    columns = max(case.columns, case.random_features)
    return 8 * case.rows * (case.columns + case.mllib * columns * (1 + case.with_vectors))


def of_ranks(case):
    """Bytes of the matrix, sent again before the last one is dropped, and of results: their files are copies."""
    return 8 * case.rows * (2 * case.columns + 2 * (case.right_columns + case.random_features))


def heap(cases):
    """Of Spark's JVM."""
    return BASE_HEAP + HEAP_OF_DATA * max(map(of_spark, cases))


def needed(case):
    return heap([case]) + of_ranks(case) + REST


def affordable(cases):
    """Those for which this machine has memory now. Prints which are left out."""
    free = machine.available_memory()
    for case in cases:
        if needed(case) > free:
            print(
                f"left out: {case.job}, {case.rows} × {case.columns}: it needs {needed(case) / 1e9:.1f} GB of memory, "
                f"and {free / 1e9:.1f} GB are free",
                flush=True,
            )
    return [case for case in cases if needed(case) <= free]
