"""Supplies ranks that something else starts: with_torchrun.py, with_stateful_data_loader.py."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
(
    df.write.format("supply")
    .mode("append")
    .option("mapped-files", "conf/mapped-files.conf")
    .option("named-pipes", "conf/named-pipes.conf")
    .option("ranks", 2)
    .option("epochs", 3)
    .save()
)
