"""The wheels and the sdist of a release, in environments that have nothing else of this project."""

import platform
import re
import tarfile
import zipfile

import pytest
from spark_supplier.launch.places import LAUNCHERS

from installing import DIGITS, DIGITS_COUNT, ROOT, SYSTEM_PYTHON, clean_environment, find_python, run

SPARK_HOME = next(ROOT.glob("build/venv/lib/python3*/site-packages/pyspark"), None)
NOTEBOOK = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
try:
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
finally:
    nbformat.write(notebook, sys.argv[2])
"""
RANK = """
import spark_supplier
with spark_supplier.ranks.open() as s:
    print(spark_supplier.__version__, spark_supplier._core.__file__, sum(len(block.numpy("label")) for block in s))
"""


def wheels(release):
    found = sorted(release.glob("*.whl"))
    assert found
    return found


def test_a_wheel_has_both_sides_and_every_license(release, version):
    for wheel in wheels(release):
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
            metadata = file.read(f"spark_supplier-{version}.dist-info/METADATA").decode()
        for jar in ("4.1", "3.5"):
            assert f"spark_supplier/jars/spark-{jar}/spark-supplier.jar" in names
        for tool in ("supply-cat", "supply-clean", "supply-stat"):
            assert f"spark_supplier-{version}.data/scripts/{tool}" in names
        assert "spark_supplier/libexec/supply-doctor" in names and "spark_supplier/launch/places.py" in names
        licenses = {name.rpartition("/")[2] for name in names if "/licenses/" in name}
        wanted = {path.name for path in (ROOT / "mpi-client" / "licenses").iterdir()} | {"LICENSE", "NOTICE"}
        assert wanted <= licenses
        assert "Requires-Python: >=3.10" in metadata and "License-Expression: Apache-2.0" in metadata
        # Programs of a checkout are not in it.
        assert not [name for name in names if "/tests/" in name or name.endswith((".cc", ".pyc"))]


def test_a_wheel_runs_on_old_systems(release):
    for wheel in wheels(release):
        said = run(ROOT / "build" / "release-venv" / "bin" / "auditwheel", "show", wheel).stdout
        platforms = re.findall(r"manylinux_2_(\d+)_(?:x86_64|aarch64)", said)
        assert platforms and min(map(int, platforms)) <= 26, said


def test_the_packages_of_the_page_are_all_that_spark_needs(release, tmp_path):
    """By the commands of docs/INSTALL.md, in an environment without the packages of the system."""
    run(SYSTEM_PYTHON, "-m", "venv", tmp_path / "env")
    pip = [tmp_path / "env" / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    local = ["--no-index", "--no-deps", "--only-binary", "spark-supplier", "--find-links", release]
    run(*pip, *local, "spark-supplier", env=clean_environment())
    run(*pip, "numpy", "tqdm", "pyarrow", "pyspark==4.1.*", env=clean_environment())
    program = "import spark_supplier; print(spark_supplier.jars())"
    said = run(tmp_path / "env" / "bin" / "python", "-c", program, cwd=tmp_path, env=clean_environment()).stdout
    assert said.startswith(str(tmp_path)) and said.endswith("/spark-4.1/spark-supplier.jar\n")


def test_the_notebook_runs_to_its_pictures(environment, tmp_path):
    import json

    notebook = ROOT / "mpi-client" / "python" / "examples" / "digits.ipynb"
    executed = tmp_path / "executed.ipynb"
    run(environment / "bin" / "python", "-c", NOTEBOOK, notebook, executed, cwd=tmp_path, env=clean_environment())
    outputs = [out for cell in json.loads(executed.read_text())["cells"] for out in cell.get("outputs", [])]
    pictures = [out["data"]["image/png"] for out in outputs if "image/png" in out.get("data", {})]
    assert len(pictures) == 3 and all(len(picture) > 4000 for picture in pictures)
    text = "".join("".join(out["text"]) for out in outputs if out["output_type"] == "stream")
    # The bar has reached its end.
    assert "rank 0, epoch 10 of 10: 100%" in text
    [(count, accuracy)] = re.findall(r"predictions=(\d+) accuracy=([0-9.]+)", text)
    assert int(count) == 360 and float(accuracy) > 0.9


def test_the_launchers_run_both_sides(environment, tmp_path):
    """From the wheel alone: the Supplier of its jar, with the PySpark beside it, and its tool as the ranks' program."""
    done = run(
        environment / "bin" / "supply-run", "--lmdb", DIGITS, "--ranks", "2", "--epochs", "1", "--",
        environment / "bin" / "supply-cat", "--count", cwd=tmp_path, env=clean_environment(),
    )  # fmt: skip
    assert sum(map(int, re.findall(r"^elements\t(\d+)$", done.stdout, re.MULTILINE))) == DIGITS_COUNT, done.stdout


def test_each_launcher_has_its_own_name(environment, tmp_path):
    # The help of `supplier` is that of the jar, too: the run above has started it.
    for launcher in LAUNCHERS.keys() - {"supplier"}:
        launcher = LAUNCHERS[launcher]
        said = run(environment / "bin" / launcher, "--help", cwd=tmp_path, env=clean_environment()).stdout
        assert said.startswith(f"Usage: {launcher} ") and "launch/" not in said.replace("launch/dev/", "")


def test_the_stable_abi_in_a_newer_python(release, version, tmp_path):
    found = list(release.glob(f"*-abi3-*_{platform.machine()}.whl"))
    if not found:
        pytest.skip("no wheel for CPython 3.12 and later: none of these was there with its headers (make wheel)")
    python = next(filter(None, map(find_python, ("3.12", "3.13", "3.14"))), None)
    if python is None:
        pytest.skip("no CPython 3.12 or later on this machine: its wheel is not tested")
    [wheel] = found
    run(python, "-m", "venv", tmp_path / "venv")
    inside = tmp_path / "venv" / "bin"
    run(inside / "pip", "install", "--quiet", "--disable-pip-version-check", wheel, env=clean_environment())
    # This Python has no PySpark: the Spark is that of SPARK_HOME.
    done = run(
        inside / "supply-run", "--lmdb", DIGITS, "--ranks", "1", "--epochs", "1", "--", inside / "python", "-c", RANK,
        cwd=tmp_path, env=clean_environment(SPARK_HOME=str(SPARK_HOME)),
    )  # fmt: skip
    [(found, core, count)] = [line.split() for line in done.stdout.splitlines() if "_core" in line]
    assert (
        (found, int(count)) == (version, DIGITS_COUNT)
        and core.endswith("/spark_supplier/_core.abi3.so")
        and core.startswith(str(tmp_path))
    )


def test_the_sdist_builds_outside_the_checkout(release, version, tmp_path):
    [sdist] = release.glob("spark_supplier-*.tar.gz")
    with tarfile.open(sdist) as file:
        names = [name.partition("/")[2] for name in file.getnames()]
    assert {"pyproject.toml", "LICENSE", "proto/layout.tsv", "spark-supplier/target/spark-supplier.jar"} <= set(names)
    assert not [name for name in names if name.startswith(("bench/", "docs/design/", "mpi-client/tests/"))]
    run(SYSTEM_PYTHON, "-m", "venv", tmp_path / "venv")
    pip = [tmp_path / "venv" / "bin" / "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run(*pip, "--wheel-dir", tmp_path, sdist, cwd=tmp_path, env=clean_environment())
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        assert any(re.fullmatch(r"spark_supplier/_core\..*\.so", name) for name in file.namelist())
        assert "spark_supplier/jars/spark-3.5/spark-supplier.jar" in file.namelist()
