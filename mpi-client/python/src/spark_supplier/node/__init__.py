"""What a Supplier starts on each node: a node process, and ranks. Of PySpark, ranks use cloudpickle only."""
