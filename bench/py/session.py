"""The Spark session of the programs in bench/py."""

import pyspark
from pyspark.sql import SparkSession

# How Spark reaches its Python fastest: since 4.1 by sockets of the machine, since 4.2 with Arrow's batches as they are,
# since 4.3 with a thread that reads ahead. A Spark that does not know a setting ignores it.
FASTEST_PYTHON = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "true",
    "spark.python.udf.pipelined.enabled": "true",
}
# Since 4.3: what is cached stays in Arrow's form, and the next batch is read ahead.
ARROW_CACHE = {
    "spark.sql.cache.serializer": "org.apache.spark.sql.execution.columnar.ArrowCachedBatchSerializer",
    "spark.sql.execution.arrow.cache.prefetch.enabled": "true",
}


def fastest():
    """Those that this Spark may be given."""
    has_arrow_cache = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 3)
    return {**FASTEST_PYTHON, **(ARROW_CACHE if has_arrow_cache else {})}


def known(spark, settings):
    """Those settings that this Spark has, with their values."""
    config = spark._jvm.org.apache.spark.internal.config
    # Its settings are not there before it is loaded.
    getattr(config, "Python$")
    return {key: value for key, value in settings.items() if config.ConfigEntry.findEntry(key) is not None}


def start(local_dir, heap_mib, cores, settings):
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.driver.memory", f"{heap_mib}m")
        .config("spark.driver.maxResultSize", "0")
        .config("spark.driver.extraJavaOptions", f"-XX:-UsePerfData -Djava.io.tmpdir={local_dir}")
        .config("spark.local.dir", local_dir)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def jvm_pid(spark):
    return spark._jvm.java.lang.ProcessHandle.current().pid()
