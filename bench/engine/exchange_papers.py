"""What MPI4Spark, SparkUCX and SparkRDMA have published, beside this run."""

from engine.figures import Table

# System, workload, its ratios for the whole job and for the stage that reads, and the figures of this run beside them.
PUBLISHED = [
    ("MPI4Spark", "GroupByTest, 8 nodes, 112 GB", "4.23 and 2.04", "13.1 and 5.6", "groupby"),
    ("MPI4Spark", "GroupByTest, 32 nodes, 448 GB", "3.78 and 2.07", "–", "groupby"),
    ("MPI4Spark", "SortByTest, 8 nodes, 112 GB", "4.31 and 1.60", "12.8 and 3.2", "sortby"),
    ("SparkUCX", "TeraSort, 15 nodes, 1.2 TB", "–", "1.64", "sortby"),
    ("SparkRDMA", "TeraSort, 7 nodes, 320 GB", "2.63", "–", "sortby"),
]
NOTE = (
    "They replaced the transport of Spark's shuffle, and the rows stayed in Spark. Ours is the exchange between ranks, "
    "and not a faster Spark shuffle: the rows leave Spark, and MPI programs get them"
)


COLUMNS = [
    "system",
    "workload",
    "their job",
    "their read stage",
    "here, RDD: job",
    "here, RDD: read stage",
    "here, Spark's best: job",
    "here, Spark's best: read stage",
]


def add_table(results):
    """The papers ran the RDD's operations. Here both are divided by the whole time of the exchange on one node."""
    table = Table(
        f"The papers' ratios, and this run's. {NOTE}. MPI4Spark: against IPoIB, and against RDMA-Spark", COLUMNS
    )
    for system, workload, job, read, key in PUBLISHED:
        keys = [f"{key}_{way}{ratio}" for way in ("rdd_", "") for ratio in ("job_ratio", "ratio")]
        ours = [results.summary.get(one) for one in keys]
        table.add(system, workload, job, read, *("–" if one is None else f"{one:.2f}" for one in ours))
    results.table(table)
