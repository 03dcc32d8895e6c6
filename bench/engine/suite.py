"""The benchmarks that make up the suite, in the order in which bench/run runs them."""

BENCHMARKS = ["cycle", "lmdb", "dataframes", "feeders", "one_call", "predictions", "exchange"]
# Not in the suite: no figure of the page needs them.
OTHERS = ["readers", "offload"]
# The others start PyTorch or MPI, which takes longer than all of these together.
QUICK = ["cycle", "lmdb"]
