"""The benchmarks that make up the suite, in the order in which bench/run runs them."""

BENCHMARKS = ["cycle", "lmdb", "alternatives", "dataframes", "one_call", "predictions", "offload", "exchange"]
# These start PyTorch or MPI, which takes longer than all others together.
NOT_QUICK = ["dataframes", "one_call", "predictions", "offload", "exchange"]
