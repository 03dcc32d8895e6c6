"""A SparkSession that has the Supplier's jar."""

from __future__ import annotations

import os
import pathlib
import sys

from pyspark.sql import SparkSession

from spark_supplier.driver.jar import add_jar, has_jar, jars
from spark_supplier.driver.sessions import ClassicSession, session_of
from spark_supplier.driver.spark_jobs import use_python_of_driver

_SPARK_BARS = "spark.ui.showConsoleProgress"


def session(builder: SparkSession.Builder | None = None, *, remote: str | None = None) -> SparkSession:
    """A SparkSession with the Supplier's jar, besides the jars of the builder or of spark-defaults.conf.

    Spark's own progress bars are off: set spark.ui.showConsoleProgress in the builder to have them, too.
    In local mode its workers run this Python, so that a virtual environment need not be active. PYSPARK_PYTHON or
    spark.pyspark.python names another one.

    builder: as SparkSession.builder.master(...).config(...); not set: a new one. If a session is running already, that
    one is returned, as getOrCreate() does, and gets the jar if it does not have it. Raises RunError if it cannot.

    remote: a session of Spark Connect, for example "sc://host:15002", or "local[4]" for a server that ends with this
    program; also by builder.remote(...) or SPARK_REMOTE. A server without the jar gets it by addArtifacts, until it
    ends. Raises RunError if the server refuses it, or has the jar of another version.
    """
    builder = builder or SparkSession.builder
    # No public call reads a builder's settings.
    remote = remote or builder._options.get("spark.remote") or os.environ.get("SPARK_REMOTE")
    if remote:
        return _of_connect(builder, remote)
    spark = _with_jar(builder).getOrCreate()
    own = session_of(spark)
    assert isinstance(own, ClassicSession)
    if not has_jar(own.context):
        add_jar(spark, jars())
    own.check("this session")
    use_python_of_driver(own)
    return spark


def _with_jar(builder: SparkSession.Builder) -> SparkSession.Builder:
    if _SPARK_BARS not in builder._options:
        # They would be on one line with the bar of a run.
        builder = builder.config(_SPARK_BARS, "false")
    if named := builder._options.get("spark.jars"):
        # A URI, since a comma ends a path. If the builder has none, those of spark-defaults.conf stay.
        builder = builder.config("spark.jars", f"{named},{pathlib.Path(jars()).absolute().as_uri()}")
    return builder


def _of_connect(builder: SparkSession.Builder, remote: str) -> SparkSession:
    if remote.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = _with_jar(builder)
    spark = builder.remote(remote).getOrCreate()
    session_of(spark).check("this session")
    return spark
