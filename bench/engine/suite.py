"""The benchmarks that make up the suite, in the order in which bench/run runs them."""

BENCHMARKS = ["cycle", "lmdb", "dataframes", "readers", "feeders", "one_call", "predictions", "offload", "exchange"]
# The others start PyTorch or MPI, which takes longer than all of these together.
QUICK = ["cycle", "lmdb"]
