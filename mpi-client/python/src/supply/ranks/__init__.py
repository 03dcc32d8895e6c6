"""What supply.spark.Supplier starts on each node: a node process, and ranks. Nothing here imports Spark."""
