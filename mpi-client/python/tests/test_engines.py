"""A rank reads the rows of tables and plans of other engines than Spark's own."""

import json
import os
import pathlib

import pyarrow
import pytest
import spark_supplier

from layout import JAR
from spark_program import LIMIT_SECONDS, SparkProgram

REPOSITORY = pathlib.Path(os.environ.get("SUPPLY_TEST_JARS", pathlib.Path.home() / ".m2" / "repository"))
ARTIFACTS = {
    "iceberg": ["org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"],
    "delta": ["io.delta:delta-spark_4.1_2.13:4.1.0", "io.delta:delta-storage:4.1.0"],
    "comet": ["org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0"],
}
SETTINGS = {
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.local.type": "hadoop",
    },
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "comet": {
        "spark.plugins": "org.apache.spark.CometPlugin",
        "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": "1g",
        # Comet leaves sums to Spark if they must not overflow.
        "spark.sql.ansi.enabled": "false",
    },
}


def jars(engine):
    """Skips the test if one of them has not been fetched."""
    paths = []
    for artifact in ARTIFACTS[engine]:
        group, name, version = artifact.split(":")
        path = REPOSITORY / group.replace(".", "/") / name / version / f"{name}-{version}.jar"
        if not path.exists():
            pytest.skip(f"no {path}: mvn dependency:get -Dtransitive=false -Dartifact={artifact}")
        paths.append(str(path))
    return paths


@pytest.fixture
def start(tmp_path):
    started = []

    def start(engine):
        own = jars(engine)
        settings = {**SETTINGS[engine], "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
        if engine == "iceberg":
            settings["spark.sql.catalog.local.warehouse"] = str(tmp_path / "warehouse")
        words = ["--jars", ",".join([str(JAR), *own]), "--driver-class-path", ":".join(own)]
        for name, value in settings.items():
            words += ["--conf", f"{name}={value}"]
        with open(tmp_path / "log", "w") as log:
            spark = SparkProgram(log, "engines.py", TZ="UTC", PYSPARK_SUBMIT_ARGS=" ".join([*words, "pyspark-shell"]))
        started.append(spark)
        return spark

    yield start
    for spark in started:
        spark.end()


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "name", "plan"),
    [
        ("iceberg", "iceberg", "BatchScan"),
        ("delta", "delta", None),
        ("comet", "comet", "Comet"),
        ("comet", "comet_computed", "Comet"),
    ],
)
def test_rows_of_another_engine_arrive(files, start, engine, name, plan):
    spark = start(engine)
    spark.send({"do": "prepare", "name": name})
    prepared = spark.answer()
    assert "error" not in prepared, prepared["error"]
    spark.send({"do": "write", "name": name, "folder": str(files.folder)})
    batches = []
    with spark_supplier.ranks.open(files.folder, 0, timeout=LIMIT_SECONDS) as s:
        for block in s:
            batches.extend(pyarrow.record_batch(block).to_pylist())
    assert spark.answer() == {}
    rows = sorted(batches, key=lambda row: row["id"])
    assert len(rows) == {"iceberg": 667, "delta": 667, "comet": 1000, "comet_computed": 990}[name]
    for row in rows:
        if "instant" in row:
            row["instant"] = row["instant"].replace(tzinfo=None)
    assert json.loads(json.dumps(rows, default=repr)) == prepared["rows"]
    # Read as columns, and not as rows.
    if plan is not None:
        assert prepared["plan"] is not None and plan in prepared["plan"], prepared["explain"]
