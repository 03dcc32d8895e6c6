"""supply-run --group: ranks of one user, and executors of another user's Spark cluster."""

import collections
import os
import pathlib
import subprocess
import tempfile

import pyspark
import pytest

import databases
from places import LAUNCH, SUPPLY_CAT
from processes import ran

# The group needs no entry in /etc/group. The executors' user needs one in /etc/passwd: Hadoop reads its name.
FEEDERS = 61000
AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", f"--groups={FEEDERS}", "--")


@pytest.fixture
def shared_folder():
    """A folder that every user can enter."""
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start executors of another user")
def test_executors_of_another_user_feed_the_ranks(start_standalone, shared_folder):
    spark = f"{os.path.dirname(pyspark.__file__)}/bin/spark-class"
    if subprocess.run([*AS_NOBODY, "test", "-r", spark], check=False).returncode:
        pytest.skip(f"the user nobody cannot read {spark}")
    database = databases.write(shared_folder / "lmdb", databases.numbered(50))
    work = shared_folder / "work"
    work.mkdir()
    work.chmod(0o777)
    output = shared_folder / "output"
    output.mkdir()
    standalone = start_standalone(work, workers=1, before=AS_NOBODY)
    note = (
        f'stat -c "%U %g %a" "$(dirname "$SUPPLY_MAPPED_FILES")" > {output}/folder; '
        f"exec {SUPPLY_CAT} > {output}/$OMPI_COMM_WORLD_RANK"
    )
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.defaultJavaOptions": f"-XX:-UsePerfData -Djava.io.tmpdir={work}",
    }
    run = ran(
        LAUNCH / "supply-run", "--master", standalone.master,
        *(f"--conf={name}={value}" for name, value in settings.items()),
        "--group", FEEDERS, "--lmdb", database, "--ranks", 2, "--epochs", 2, "--", "sh", "-c", note,
        SPARK_LOCAL_IP="127.0.0.1",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = [line for rank in "01" for line in (output / rank).read_text().splitlines()]
    assert collections.Counter(lines) == databases.expected_lines(database, 2)
    assert (output / "folder").read_text() == f"root {FEEDERS} 750\n"
    assert {folder.owner() for folder in work.glob("work-0/app-*/*")} == {"nobody"}
