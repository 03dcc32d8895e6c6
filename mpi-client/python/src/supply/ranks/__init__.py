"""What supply.spark.Supplier starts on each node: a node process, and ranks. Of Spark, ranks import cloudpickle only."""
