"""What MPI4Spark, SparkUCX and SparkRDMA have published, and this run's figures beside it."""

# System, workload, how many times as fast as Spark the whole job and the stage that reads were, and the figures of this
# run beside them.
PUBLISHED = [
    ("MPI4Spark", "GroupByTest, 8 nodes, 112 GB", "job 4.23 and 2.04, reading stage 13.1 and 5.6", "groupby"),
    ("MPI4Spark", "GroupByTest, 32 nodes, 448 GB", "job 3.78 and 2.07", "groupby"),
    ("MPI4Spark", "SortByTest, 8 nodes, 112 GB", "job 4.31 and 1.60, reading stage 12.8 and 3.2", "sortby"),
    ("MPI4Spark on YARN", "GroupByTest, 128 nodes, 1,344 GB", "job 3.29 and 2.32", "groupby"),
    ("MPI4Spark on YARN", "SortByTest, 64 nodes, 896 GB", "job 4.52 and 2.33", "sortby"),
    ("SparkUCX", "TeraSort, 15 nodes, 1.2 TB", "reading stage 1.64", "sortby"),
    ("SparkRDMA", "TeraSort, 7 nodes, 320 GB", "job 2.63", "sortby"),
]
WAYS = {"rdd_": "RDD", "": "Spark's fastest way"}


def publish(results):
    """Adds their ratios and ours. Here both of Spark's times are divided by the whole time of the exchange."""
    for system, workload, theirs, key in PUBLISHED:
        ours = [
            f"{name}: job {results.summary[f'{key}_{way}job_ratio']:.2f}, "
            f"reading stage {results.summary[f'{key}_{way}ratio']:.2f}"
            for way, name in WAYS.items()
        ]
        results.publish(system, workload, theirs, "; ".join(ours))
