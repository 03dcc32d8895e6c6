"""The jar in the package, and the session that has it."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pyspark
import pytest
import spark_supplier

from layout import ROOT
from supplier_session import shared_memory

SESSION = """
import sys
from pyspark.sql import SparkSession
import spark_supplier

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False)
spark = spark_supplier.session(builder.config("spark.jars", sys.argv[1]))
assert spark.conf.get("spark.jars").startswith(f"{sys.argv[1]},file:///")
try:
    spark.range(1).write.format("supply").option("ranks", "1").mode("append").save()
except Exception as error:
    print("the writer says:", str(error).splitlines()[0])
assert spark_supplier.session() is spark
"""
DEFAULTS = """
import threading
from pyspark.sql import SparkSession
import spark_supplier

spark = spark_supplier.session(SparkSession.builder.master("local[1]").config("spark.ui.enabled", False))
loader = spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader()
print("company:", loader.getResource("company.txt") is not None, spark.conf.get("spark.jars"))
try:
    spark.range(1).write.format("supply").option("ranks", "1").mode("append").save()
except Exception as error:
    print("the writer says:", str(error).splitlines()[0])
"""
WORKER = """
import sys
from pyspark.sql import SparkSession
import spark_supplier

spark = spark_supplier.session(SparkSession.builder.master("local[1]").config("spark.ui.enabled", False))
print("worker:", *spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect())
"""
NAMED = """
from pyspark.sql import SparkSession
import spark_supplier

spark_supplier.session(SparkSession.builder.master("local[1]").config("spark.ui.enabled", False))
"""
LATER = """
import sys
import threading

import spark_supplier
from pyspark.sql import SparkSession

def write(data):
    with data.results() as out:
        for batch in data:
            out.write({"id": batch["id"]})
    return "written"

def run():
    returned = spark_supplier.Supplier(1, folder=folder).run(write, spark.range(100), results="id")
    print("rows:", returned.value, returned.rows.count(), flush=True)
    returned.release()

master, folder, *before = sys.argv[1:]
builder = SparkSession.builder.master(master).config("spark.ui.enabled", False).config("spark.log.level", "OFF")
spark = builder.getOrCreate()
try:
    spark_supplier.Supplier(1).run(write, spark.range(100))
except spark_supplier.RunError as error:
    print("without:", error)
for statement in before:
    spark.sql(statement).collect()
assert spark_supplier.session() is spark
run()
thread = threading.Thread(target=run)
thread.start()
thread.join()
spark.stop()
"""

AGAIN = """
import sys

import spark_supplier
from pyspark.sql import SparkSession

def count(data):
    return sum(len(batch["id"]) for batch in data)

def run():
    print("rows:", spark_supplier.Supplier(1, folder=sys.argv[1]).run(count, spark.range(100)), flush=True)
    spark.stop()

builder = SparkSession.builder.master("local-cluster[1,2,1024]").config("spark.ui.enabled", False)
for _ in range(2):
    spark = spark_supplier.session(builder)
    run()
spark = builder.getOrCreate()
try:
    run()
except spark_supplier.RunError as error:
    print("without:", error)
"""


def run(tmp_path, program, *arguments, **variables):
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, tmp_path / "program.py", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path, env=environment)


def test_the_jar_is_for_this_pyspark():
    line = ".".join(pyspark.__version__.split(".")[:2])
    with zipfile.ZipFile(spark_supplier.jars()) as jar:
        built_for = jar.read("supply/built-for.properties").decode()
    assert f"={line}" in built_for.replace(" ", ""), built_for


def test_there_is_no_jar_for_another_pyspark(monkeypatch):
    monkeypatch.delenv("SUPPLY_JAR", raising=False)
    monkeypatch.setattr(pyspark, "__version__", "9.9.1")
    with pytest.raises(
        spark_supplier.RunError, match=r"no jar for PySpark 9\.9\.1 .*install a PySpark of .*4\.1.* SUPPLY_JAR"
    ):
        spark_supplier.jars()


def test_a_jar_is_for_each_minor_version(monkeypatch):
    usual = spark_supplier.jars()
    monkeypatch.setattr(pyspark, "__version__", pyspark.__version__.partition(".")[0] + ".99.0")
    assert spark_supplier.jars() == usual


@pytest.mark.spark_3_5
def test_a_jar_for_another_spark_is_refused(tmp_path):
    other = ROOT / "build" / "spark-3.5" / "target" / "spark-supplier.jar"
    done = run(tmp_path, NAMED, SUPPLY_JAR=str(other))
    assert done.returncode == 1
    assert "RunError: this jar is built for Spark 3.5 with Scala 2.12, and this is Spark 4." in done.stderr


def test_a_jar_that_is_named(monkeypatch, tmp_path):
    jar = tmp_path / "mine.jar"
    monkeypatch.setenv("SUPPLY_JAR", str(jar))
    with pytest.raises(spark_supplier.RunError, match="SUPPLY_JAR names .*mine.jar, which is not a file"):
        spark_supplier.jars()
    jar.touch()
    assert spark_supplier.jars() == str(jar)


def test_a_session_has_the_jar_and_those_of_its_builder(tmp_path):
    other = tmp_path / "other.jar"
    with zipfile.ZipFile(other, "w") as jar:
        jar.writestr("empty", "")
    done = run(tmp_path, SESSION, other, SUPPLY_JAR=odd_jar(tmp_path))
    assert done.returncode == 0, done.stderr
    # It has found the data source: the message is not Spark's own, of a format that it does not know.
    assert "the writer says:" in done.stdout and "DATA_SOURCE_NOT_FOUND" not in done.stdout


def odd_jar(folder):
    """The jar in a folder whose name means something in a URI, in a list and in a pattern."""
    jar = folder / "a#b, c%20d" / "spark-supplier.jar"
    jar.parent.mkdir()
    jar.write_bytes(pathlib.Path(spark_supplier.jars()).read_bytes())
    return str(jar)


@pytest.mark.long
def test_a_session_has_the_jar_and_those_of_spark_defaults(tmp_path):
    other = tmp_path / "company.jar"
    with zipfile.ZipFile(other, "w") as jar:
        jar.writestr("company.txt", "")
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars {other}\n")
    done = run(tmp_path, DEFAULTS, SPARK_CONF_DIR=str(tmp_path), SUPPLY_JAR=odd_jar(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"company: True {other.as_uri()}" in done.stdout.replace("file:/" + str(other)[1:], other.as_uri())
    assert "the writer says:" in done.stdout and "DATA_SOURCE_NOT_FOUND" not in done.stdout


@pytest.mark.long
def test_a_worker_runs_the_python_of_the_driver(tmp_path):
    """As in a notebook whose virtual environment is not active: python3 on PATH is another one."""
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    done = run(tmp_path, WORKER, PATH=f"{other.parent}:{os.environ['PATH']}")
    assert f"worker: {sys.executable}" in done.stdout, done.stderr


def run_later(tmp_path, master, *before, **variables):
    with shared_memory() as folder:
        return run(tmp_path, LATER, master, folder, *before, PYSPARK_PYTHON=sys.executable, **variables)


@pytest.mark.long
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,2,1024]"])
def test_a_session_that_began_without_the_jar_gets_it(tmp_path, master):
    done = run_later(tmp_path, master, SUPPLY_JAR=odd_jar(tmp_path))
    assert "without: the session of df does not have the Supplier's jar" in done.stdout, done.stderr
    assert "call spark_supplier.session(), which adds it" in done.stdout
    assert done.stdout.count("rows: written 100") == 2, done.stderr


@pytest.mark.long
def test_a_session_after_another_one(tmp_path):
    """The driver's JVM has the jar of the first one, but the new executors do not."""
    with shared_memory() as folder:
        done = run(tmp_path, AGAIN, folder, PYSPARK_PYTHON=sys.executable)
    assert done.stdout.count("rows: 100") == 2, done.stderr
    assert "without: the session of df does not have the Supplier's jar" in done.stdout, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("master", ["local[2]", pytest.param("local-cluster[1,2,1024]", marks=pytest.mark.long)])
def test_a_session_that_got_the_jar_by_add_jar(tmp_path, master):
    done = run_later(tmp_path, master, f"ADD JAR '{spark_supplier.jars()}'")
    assert done.stdout.count("rows: written 100") == 2, done.stderr


@pytest.mark.long
def test_a_session_that_has_used_the_jar_of_add_jar_is_refused(tmp_path):
    (tmp_path / "rows.json").write_text('{"a": 1}')
    statements = [f"ADD JAR '{spark_supplier.jars()}'", f"SELECT * FROM json.`{tmp_path}/rows.json`"]
    done = run_later(tmp_path, "local[2]", *statements)
    assert done.returncode == 1
    assert "RunError: this session got the Supplier's jar by ADD JAR, and Spark has used it since" in done.stderr
