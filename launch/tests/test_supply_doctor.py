"""launch/supply-doctor: its Spark side, in real JVMs. mpi-client/tests has tests of the other side."""

import json
import pathlib
import zipfile

import pyspark

from places import JAR, LAUNCH, LMDB_LIBRARIES
from processes import ran


def doctor(pairs, temporary, *arguments, **environment):
    done = ran(LAUNCH / "supply-doctor", *pairs.options(), *arguments, TMPDIR=str(temporary), **environment)
    assert done.stderr == ""
    assert list(temporary.iterdir()) == []
    return done


def by_check(lines):
    return {finding["check"]: finding for finding in map(json.loads, lines.splitlines())}


def test_both_sides_in_one_list(make_pairs, tmp_path):
    pairs = make_pairs(2)
    done = doctor(pairs, tmp_path, "--json")
    assert done.returncode == 0, done.stdout
    found = by_check(done.stdout)
    for check in ("libsupply", "pairs", "space", "java", "spark", "contract", "options", "lmdb"):
        assert found[check]["status"] == "ok", found[check]
    assert found["spark"]["text"].startswith(pyspark.__version__)
    assert pairs.left_behind() == []


def test_a_jvm_in_which_the_supplier_would_fail(tmp_path):
    jars = pathlib.Path(pyspark.__file__).parent / "jars"
    with zipfile.ZipFile(JAR) as jar:
        machines = "x86_64 and aarch64" if LMDB_LIBRARIES["aarch64"] in jar.namelist() else "x86_64"
    classes = ["-cp", f"{JAR}:{jars}/*", "supply.tools.Doctor"]
    done = ran("java", "-XX:-UsePerfData", "-Djava.io.tmpdir=/proc", *classes, "2.0")
    assert done.returncode == 0, done.stderr
    found = {line[1]: line for line in (line.split("\t") for line in done.stdout.splitlines())}
    for check, text, fix in (
        ("contract", "libsupply 2.0", "same release"),
        ("options", "--add-opens", "spark-submit"),
        ("lmdb", "java.io.tmpdir (/proc)", ""),
        ("lmdb", f"this jar has it for Linux on {machines}, and this is Linux on ", ""),
    ):
        assert found[check][0] == "failed"
        assert text in found[check][2] and fix in found[check][3]
    assert found["java"][0] == "ok"


def test_what_a_jvm_prints_by_itself_is_no_finding(make_pairs, tmp_path):
    done = doctor(make_pairs(), tmp_path, "--json", JDK_JAVA_OPTIONS="-Xlog:gc", JAVA_TOOL_OPTIONS="-Dx=y")
    assert done.returncode == 0, done.stdout
    assert "gc" not in by_check(done.stdout)


def test_it_names_what_it_cannot_check(make_pairs, tmp_path):
    done = doctor(make_pairs(), tmp_path, SPARK_HOME="/nowhere")
    assert done.returncode == 0
    assert "skipped  spark" in done.stdout and "no Spark in /nowhere" in done.stdout
    of_jvm = {"JAVA_TOOL_OPTIONS": "-Dx=y", "JDK_JAVA_OPTIONS": "-Xlog:gc"}
    done = doctor(make_pairs(), tmp_path, "--conf", "spark.driver.memory=1k", **of_jvm)
    assert done.returncode == 1 and "Picked up" not in done.stdout and "[gc]" not in done.stdout, done.stdout
    assert "failed   spark" in done.stdout
    done = doctor(make_pairs(), tmp_path, JAVA_HOME="/nowhere")
    assert done.returncode == 1
    assert "failed   spark" in done.stdout and "/nowhere/bin/java: No such file" in done.stdout


def test_mistakes_and_help(make_pairs, tmp_path):
    done = ran(LAUNCH / "supply-doctor", "--help")
    assert ran(LAUNCH / "supply-doctor", "-h").stdout == done.stdout
    assert "--mapped-files FILE" in done.stdout and "--findings" not in done.stdout
    assert "--conf KEY=VALUE" in done.stdout
    done = ran(LAUNCH / "supply-doctor", "--bogus", SPARK_HOME="/nowhere")
    assert done.returncode == 2 and "--bogus" in done.stderr
