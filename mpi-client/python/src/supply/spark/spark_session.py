"""The Supplier's jar, and a SparkSession that has it."""

from __future__ import annotations

import os
import pathlib

import pyspark
from pyspark.sql import SparkSession

import supply
from supply.errors import RunError
from supply.spark.checks import check_jar
from supply.spark.spark_jobs import use_python_of_driver

_SPARK_BARS = "spark.ui.showConsoleProgress"


def jars() -> str:
    """The path of the Supplier's jar for the installed PySpark: for SparkSession.builder.config("spark.jars", jars()).

    SUPPLY_JAR of the environment names another jar. Otherwise it is one of those in this package, which has one for
    each major version: that of Spark 4.1 is for all of Spark 4, that of 3.5 for Spark 3. Raises RunError if there
    is none for this PySpark.
    """
    named = os.environ.get("SUPPLY_JAR")
    if named:
        if pathlib.Path(named).is_file():
            return named
        raise RunError(f"SUPPLY_JAR names {named}, which is not a file: set it to spark-supplier.jar, or unset it")
    folder = pathlib.Path(supply.__file__).parent / "jars"
    major = pyspark.__version__.partition(".")[0]
    found = sorted(folder.glob("spark-*/spark-supplier.jar"))
    for jar in found:
        if jar.parent.name.startswith(f"spark-{major}."):
            return str(jar)
    present = " and ".join(jar.parent.name[len("spark-") :] for jar in found)
    raise RunError(
        f"this package has no jar for PySpark {pyspark.__version__} ({folder}): install "
        + (f"a PySpark of {present}" if present else "a wheel with the jars (in a checkout, make python)")
        + ", or set SUPPLY_JAR to the jar"
    )


def session(builder: SparkSession.Builder | None = None) -> SparkSession:
    """A SparkSession with the Supplier's jar, besides the jars that the builder's spark.jars names.

    Spark's own progress bars are off: set spark.ui.showConsoleProgress in the builder to have them, too.
    In local mode its workers run this Python, so that a virtual environment need not be active. PYSPARK_PYTHON or
    spark.pyspark.python names another one.

    builder: as SparkSession.builder.master(...).config(...); not set: a new one. If a session is running already, that
    one is returned, as getOrCreate() does. Raises RunError if it does not have the jar: the JVM of a Python
    process takes its jars when it starts, so the first session of the process must name them.
    """
    own = jars()
    if (builder is not None and "spark.remote" in builder._options) or "SPARK_REMOTE" in os.environ:
        raise RunError(
            "supply.spark.session() makes sessions of Spark Classic, and spark.remote (or SPARK_REMOTE) asks for Spark "
            "Connect: make that with SparkSession.builder.remote(...).getOrCreate(), and add the jar by "
            "spark.addArtifacts(supply.spark.jars())"
        )
    builder = builder or SparkSession.builder
    # No public call reads a builder's settings.
    others = builder._options.get("spark.jars", "")
    if _SPARK_BARS not in builder._options:
        # They would be on one line with the bar of a run.
        builder = builder.config(_SPARK_BARS, "false")
    spark = builder.config("spark.jars", ",".join(filter(None, [others, own]))).getOrCreate()
    check_jar(spark.sparkContext)
    use_python_of_driver(spark.sparkContext)
    return spark
