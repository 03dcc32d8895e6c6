"""The Spark session of the programs in bench/py."""

from pyspark.sql import SparkSession

# How Spark reaches its Python fastest: since 4.1 by sockets of the machine, since 4.3 with a thread that reads
# ahead, and with Arrow's batches as they are. A Spark that does not know a setting ignores it.
FASTEST_PYTHON = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.udf.pipelined.enabled": "true",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "true",
}


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
