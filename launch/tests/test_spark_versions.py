"""The supported versions of Spark, and a jar on a Spark that it is not built for."""

import collections

import pytest

import databases
from places import HOMES, JARS, LAUNCH
from processes import ran

pytestmark = pytest.mark.spark_3_5
SCALA = {"4.1": "2.13", "3.5": "2.12"}
# The options of spark-submit.
JAVA = ["java", "-XX:-UsePerfData", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]


def test_a_whole_run_with_spark_3_5_and_a_task_that_fails(supply_run, tmp_path):
    entries = databases.write(tmp_path / "lmdb", databases.numbered(300))
    fail_point = tmp_path / "fail-point"
    fail_point.write_text("P3:throw:after=5\n")
    # Two slots, and a second attempt for each task.
    run = supply_run(
        *("--lmdb", entries, "--ranks", 2, "--epochs", 2, "--block-elements", 20, "--master", "local[2,2]"),
        SPARK_HOME=str(HOMES["3.5"]),
        SUPPLY_FAIL_POINT=str(fail_point),
    )
    assert run.finish() == 0, run.errors
    assert collections.Counter(run.lines) == databases.expected_lines(entries, 2)
    assert not fail_point.exists(), "no task has failed"


@pytest.mark.parametrize("spark", HOMES)
def test_the_scripts_take_the_jar_of_that_spark(make_pairs, spark):
    done = ran(LAUNCH / "supply-doctor", *make_pairs().options(), SPARK_HOME=str(HOMES[spark]))
    assert done.returncode == 0, done.stdout
    [line] = [line for line in done.stdout.splitlines() if line.split()[1] == "spark"]
    assert line.startswith("ok ") and f" {spark}." in line and f"with Scala {SCALA[spark]}." in line


@pytest.mark.parametrize("spark, other", [("4.1", "3.5"), ("3.5", "4.1")])
def test_a_jar_on_a_spark_that_it_is_not_built_for(spark, other):
    mismatch = f"this jar is built for Spark {other} with Scala {SCALA[other]}, and this is Spark {spark}."
    fix = f"make build SPARK={spark}"

    classes = f"{JARS[other]}:{HOMES[spark]}/jars/*"
    done = ran(*JAVA, "-cp", classes, "supply.lmdb.Supplier", "1.0")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"supplier: error: {mismatch}") and fix in line
    done = ran(*JAVA, "-cp", classes, "supply.tools.Doctor", "1.0")
    assert (done.returncode, done.stderr) == (0, "")
    status, check, text, advice = done.stdout.rstrip("\n").split("\t")
    assert (status, check) == ("failed", "spark") and text.startswith(mismatch) and fix in advice
