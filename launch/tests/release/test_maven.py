"""The Maven repository of a release."""

import re
import xml.etree.ElementTree
import zipfile

import pytest

from installing import ROOT, clean_environment, run

POM = "{http://maven.apache.org/POM/4.0.0}"
GROUP = "io.github.spark-supplier"
ARTIFACTS = {"4.1": "spark-supplier-4.1_2.13", "3.5": "spark-supplier-3.5_2.12"}
HOMES = {
    "4.1": next(ROOT.glob("build/venv/lib/python3*/site-packages/pyspark"), None),
    "3.5": ROOT / "build" / "spark-3.5" / "home",
}
PROGRAM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
df = spark.read.format("lmdb").load(sys.argv[1])
print("rows:", df.count(), "columns:", ",".join(df.columns))
"""


@pytest.fixture(params=ARTIFACTS)
def spark(request):
    return request.param


def folder_of(release, version, spark):
    return release / "maven" / GROUP.replace(".", "/") / ARTIFACTS[spark] / version


def test_the_pom_has_what_a_repository_wants(release, version, spark):
    text = (folder_of(release, version, spark) / f"{ARTIFACTS[spark]}-{version}.pom").read_text()
    assert "${" not in text
    pom = xml.etree.ElementTree.fromstring(text)
    for name, value in (("groupId", GROUP), ("artifactId", ARTIFACTS[spark]), ("version", version)):
        assert pom.findtext(POM + name) == value
    wanted = ["name", "description", "url", "licenses/{P}license/{P}url", "developers/{P}developer/{P}name"]
    for path in [*wanted, "scm/{P}connection", "scm/{P}developerConnection", "scm/{P}url"]:
        assert pom.findtext(POM + path.replace("{P}", POM)), path
    # The jar contains its libraries, and Spark provides the rest.
    assert pom.find(f"{POM}dependencies") is None


def test_sources_and_documentation(release, version, spark):
    folder = folder_of(release, version, spark)
    names = {}
    for kind in ("", "-sources", "-javadoc"):
        with zipfile.ZipFile(folder / f"{ARTIFACTS[spark]}-{version}{kind}.jar") as jar:
            names[kind] = jar.namelist()
    assert {"META-INF/NOTICE", "META-INF/LICENSE", "META-INF/licenses/EPL-1.0.txt"} <= set(names[""])
    assert "supply/lmdb/Supplier.scala" in names["-sources"] and "index.html" in names["-javadoc"]
    assert any(re.fullmatch(r"supply/api/.*\.html", name) for name in names["-javadoc"])


def test_spark_submit_takes_it_from_a_local_repository(release, version, spark, tmp_path):
    home = HOMES[spark]
    if not home or not home.exists():
        pytest.fail(f"there is no Spark {spark} in build: run 'make build-every-spark'")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(
        home / "bin" / "spark-submit", "--master", "local[1]", "--packages", f"{GROUP}:{ARTIFACTS[spark]}:{version}",
        "--repositories", (release / "maven").as_uri(), "--conf", f"spark.jars.ivy={tmp_path}/ivy",
        "--conf", "spark.ui.enabled=false", tmp_path / "program.py", ROOT / "build" / "digits" / "train_lmdb",
        cwd=tmp_path, env=clean_environment(SPARK_HOME=str(home), PYSPARK_PYTHON=str(ROOT / "build/venv/bin/python")),
    )  # fmt: skip
    assert "rows: 1437 columns: key," in done.stdout
    assert [path.name for path in (tmp_path / "ivy" / "jars").iterdir()] == [
        f"{GROUP}_{ARTIFACTS[spark]}-{version}.jar"
    ]
