"""The Spark session of the programs in bench/py."""

from pyspark.sql import SparkSession

# How Spark reaches its Python fastest: since 4.1 by sockets of the machine, since 4.2 with Arrow's batches as they are,
# since 4.3 with a thread that reads ahead. A Spark that does not know a setting ignores it.
FASTEST_PYTHON = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "true",
    "spark.python.udf.pipelined.enabled": "true",
}


def start(local_dir, jar, heap_mib, cores, **settings):
    usual = {
        **FASTEST_PYTHON,
        "spark.jars": jar,
        "spark.driver.memory": f"{heap_mib}m",
        "spark.driver.maxResultSize": "0",
        "spark.driver.extraJavaOptions": f"-XX:-UsePerfData -Djava.io.tmpdir={local_dir}",
        "spark.local.dir": local_dir,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]")
    for key, value in {**usual, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
