"""The benchmarks that make up the suite, in the order in which bench/run runs them."""

BENCHMARKS = [
    "read",
    "write",
    "cycle",
    "shuffle",
    "resident",
    "resident_files",
    "lmdb",
    "spilled",
    "nodes",
    "alternatives",
    "dataframes",
    "one_call",
    "predictions",
    "offload",
    "exchange",
]
# These start a cluster and PyTorch, which takes longer than all others together.
NOT_QUICK = ["nodes", "dataframes", "one_call", "predictions", "offload", "exchange"]
