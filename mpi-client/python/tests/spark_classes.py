"""Loads the classes that tests need in Spark's JVM. The Makefile archives them for each later JVM."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
df = spark.range(0, 1000, 1, 4).selectExpr("id", "array(float(id), 1f) as features", "string(id) as name").cache()
df.groupBy("name").count().orderBy("name").collect()
df.repartition(2).collect()
df.rdd.map(len).sum()
spark.stop()
