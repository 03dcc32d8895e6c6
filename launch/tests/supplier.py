"""The Supplier, in one JVM for all tests: a SparkContext, by default in this JVM alone with eight task slots."""

import concurrent.futures
import os
import re
import threading

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from places import JAR, ROOT

SLOTS = 8
STOP_SECONDS = 300


class SupplierFailure(Exception):
    """The message that the Supplier's main program prints after `supplier: error: `."""


class Supplier:
    def __init__(self, temporary, master=f"local[{SLOTS}]", **settings):
        os.environ["SPARK_CONF_DIR"] = str(ROOT / "configs" / "spark")
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        settings = {
            "spark.driver.extraClassPath": str(JAR),
            "spark.driver.defaultJavaOptions": f"-XX:-UsePerfData -Djava.io.tmpdir={temporary}",
            "spark.local.dir": str(temporary),
            **settings,
        }
        self.session = SparkSession.builder.master(master).config(map=settings).getOrCreate()
        self._threads = concurrent.futures.ThreadPoolExecutor()

    def start(self, database, pairs, *options, ranks=1, timeout=20):
        """Starts a run. Returns a future, whose result is the table of the run, or raises SupplierFailure."""
        arguments = ["--lmdb", database, *pairs.options(), "--ranks", ranks, "--timeout", timeout, *options]
        return self._threads.submit(self._run, [str(argument) for argument in arguments])

    def _run(self, arguments):
        jvm = self.session._jvm
        array = self.session._sc._gateway.new_array(jvm.java.lang.String, len(arguments))
        for index, argument in enumerate(arguments):
            array[index] = argument
        try:
            return jvm.supply.lmdb.Supplier.run(self.session._jsc.sc(), array)
        except Py4JJavaError as error:
            raise SupplierFailure(error.java_exception.getMessage()) from None

    def datums(self, uri, **options):
        """The rows of an LMDB that Spark reads as a DataFrame."""
        return self.session.read.format("lmdb").options(**options).load(uri).collect()

    def stop(self):
        gateway = self.session._sc._gateway
        # A run that does not end would hold this process, also at its exit.
        killing = threading.Timer(STOP_SECONDS, gateway.proc.kill)
        killing.daemon = True
        killing.start()
        self._threads.shutdown()
        self.session.stop()
        killing.cancel()
        # The JVM ends when its stdin ends.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=60)


def rows(table):
    """The rows of the table by column name, one row a rank."""
    header, *lines = table.splitlines()
    names = re.split(r"\s{2,}", header.strip())
    return [dict(zip(names, re.split(r"\s{2,}", line.strip()))) for line in lines]
