"""Spark with an executor, which serves a rank elsewhere, for bench/feeders. Each line of JSON on stdin is a write."""

import json
import os
import pathlib
import sys

import session

EXECUTOR_MIB, CORES = 2048, 2


def linked_home(folder):
    """A home of Spark in this folder: the executor logs into it."""
    home = pathlib.Path(folder, "spark")
    home.mkdir()
    for entry in pathlib.Path(os.environ["SPARK_HOME"]).iterdir():
        (home / entry.name).symlink_to(entry)
    return str(home)


def supply_lmdb(spark, **options):
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    arguments = spark.sparkContext._gateway.new_array(spark._jvm.String, len(words))
    for number, word in enumerate(words):
        arguments[number] = word
    spark._jvm.supply.lmdb.Supplier.run(spark.sparkContext._jsc.sc(), arguments)


def supply_frame(spark, rows, row_bytes, **options):
    """Rows that know when Spark made them, by the clock of the machine."""
    frame = spark.range(0, rows, 1, 1).selectExpr(
        "cast(java_method('java.lang.System', 'nanoTime') as bigint) as made",
        f"cast(repeat('x', {row_bytes}) as binary) as data",
    )
    frame.write.format("supply").mode("append").options(**options).save()


def main():
    local_dir, jar, address, port, tls = sys.argv[1:]
    os.environ["SPARK_HOME"] = linked_home(local_dir)
    settings = {
        # `local` would listen at the loopback alone.
        "spark.master": f"local-cluster[1,{CORES},{EXECUTOR_MIB}]",
        "spark.executor.memory": f"{EXECUTOR_MIB}m",
        "spark.executor.extraJavaOptions": f"-XX:-UsePerfData -Djava.io.tmpdir={local_dir}",
        "spark.driver.host": address,
        "spark.supply.hub.port": port,
        "spark.supply.hub.tls": tls,
    }
    spark = session.start(local_dir, jar, 1024, CORES, **settings)
    try:
        jvm = spark._jvm
        # Each run prints by what ranks connect, and its progress. Errors are logged all the same.
        jvm.java.lang.System.setErr(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))
        logging = jvm.org.apache.logging.log4j
        logging.core.config.Configurator.setLevel("supply.run.Progress", logging.Level.WARN)
        print(json.dumps({"version": spark.version}), flush=True)
        for line in sys.stdin:
            what = json.loads(line)
            {"lmdb": supply_lmdb, "frame": supply_frame}[what.pop("do")](spark, **what)
            print(json.dumps({}), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
