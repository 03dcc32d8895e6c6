"""The pages' programs in every kind of session (`make test-sessions`). A session that cannot start here is skipped."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from programs import SCRIPT, programs
from sessions import ROOT, SESSIONS, Skipped

SECONDS = 420
# Of every session.
SETTINGS = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}


@pytest.fixture(scope="module", params=SESSIONS)
def place(request):
    """Where a program runs, and its folder, which pods see at the same path."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / "build")))
        try:
            made = stack.enter_context(SESSIONS[request.param](folder))
        except Skipped as why:
            pytest.skip(str(why))
        yield made, folder / "shared" if (folder / "shared").exists() else folder


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_a_program(place, program):
    place, folder = place
    (folder / "train.py").write_text(SCRIPT)
    (folder / "program.py").write_text(program.text)
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    settings = {**SETTINGS, **place.settings}
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    environment = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_PYTHON")}
    environment |= {"SPARK_CONF_DIR": str(conf), "OMP_NUM_THREADS": "1", **place.environment}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*place.command, sys.executable, "program.py"], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            status = process.wait(SECONDS)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
        output.seek(0)
        text = output.read()
    assert status == 0 and program.is_right(text), text[-2000:]
