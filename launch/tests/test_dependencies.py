"""docs/DEPENDENCIES.md agrees with the sources; everything is pinned."""

import re
import subprocess

import pytest

from places import ROOT

POM = (ROOT / "spark-supplier" / "pom.xml").read_text()
TABLES = {
    row[0].strip(): row[1].strip()
    for line in (ROOT / "docs" / "DEPENDENCIES.md").read_text().splitlines()
    if line.startswith("| ") and len(row := line.strip("|").split("|")) == 5
}


def requirement_files():
    listed = subprocess.run(
        ["git", "ls-files", "*requirements*.txt"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.split()


def test_every_python_package_is_pinned():
    for file in requirement_files():
        for line in (ROOT / file).read_text().splitlines():
            assert re.fullmatch(r"(#.*)?|[\w.-]+(\[\w+\])?==[\w.]+", line), f"{file}: {line}"


@pytest.mark.parametrize("pom", ["spark-supplier/pom.xml", "configs/dev/hadoop/pom.xml"])
def test_every_maven_package_is_pinned(pom):
    text = (ROOT / pom).read_text()
    for package in re.findall(r"<dependency>(.*?)</dependency>", text, re.DOTALL):
        version = re.search(r"<version>([^<]+)</version>", package)[1]
        name = re.fullmatch(r"\$\{(.+)\}", version)
        versions = re.findall(f"<{name[1]}>([^<]+)</{name[1]}>", text) if name else [version]
        assert versions and all(re.fullmatch(r"\d[\w.-]*", version) for version in versions), package


def test_the_versions_in_the_jar():
    notice = (ROOT / "spark-supplier/src/main/resources/META-INF/NOTICE").read_text()
    for name in ("lmdbjni", "protobuf", "picocli"):
        version = re.search(rf"<{name}.version>(.+)</{name}.version>", POM)[1]
        assert TABLES[{"protobuf": "protobuf-java"}.get(name, name)] == version
    assert f"LMDB {TABLES['LMDB']}," in notice and f"hawtjni {TABLES['hawtjni-runtime']} " in notice
    described = re.findall(r"^\* (\w+)", notice, re.MULTILINE)
    assert all(any(name in row for row in TABLES) for name in described if name != "Protocol")


def test_the_software_of_the_python_package():
    notice = (ROOT / "mpi-client" / "NOTICE").read_text()
    for name in re.findall(r"^\* ([^(,]*[^ (,])", notice, re.MULTILINE):
        assert any(name in row for row in TABLES), name
    pins = dict(
        line.split("==")
        for line in (ROOT / "configs/dev/release-requirements.txt").read_text().splitlines()
        if "==" in line
    )
    assert TABLES["nanobind"] == pins["nanobind"]
    assert f"ziglang {pins['ziglang']}'s" in TABLES.values()


def test_the_lowest_versions():
    allowed = re.findall(r'"([\w.-]+)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    rows = {name.lower(): version for name, version in TABLES.items()}
    found = {name: rows.get({"torch": "pytorch"}.get(name, name)) for name, _ in allowed}
    assert {name: version for name, version in allowed if name in found and found[name]} == {
        name: version for name, version in found.items() if version
    }
    assert {"numpy", "pyarrow", "pyspark", "torch", "tqdm", "mpi4py"} <= {name for name, row in found.items() if row}
