"""The recipes of Spack and conda for a release: docs/design/packaging.md says how much of them is tried here."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest

from installing import DIGITS, DIGITS_COUNT, ROOT, SYSTEM_PYTHON, clean_environment, run

SPARK_HOME = next(ROOT.glob("build/venv/lib/python3*/site-packages/pyspark"), None)
OUTSIDE = ROOT / "mpi-client" / "tests" / "package" / "outside"
RENDER = """
import json, sys
from rattler_build import Stage0Recipe, VariantConfig
recipe = Stage0Recipe.from_file(sys.argv[1] + "/recipe.yaml")
variants = VariantConfig.from_file(sys.argv[1] + "/variants.yaml")
for output in recipe.render(variants):
    print(json.dumps([output.recipe.package.name, str(output.recipe.package.version), output.variant.get("mpi")]))
"""


@pytest.fixture
def sdist(release, version):
    return release / f"spark_supplier-{version}.tar.gz"


@pytest.fixture(params=["spack/packages/spark-supplier/package.py", "conda/recipe.yaml"])
def recipe(release, request):
    return (release / request.param).read_text()


def test_a_recipe_is_for_the_sdist_of_this_release(recipe, sdist, version):
    assert re.findall(r'sha256[=:] ?"(\w+)"', recipe) == [hashlib.sha256(sdist.read_bytes()).hexdigest()]
    assert f'"{version}"' in recipe and "@VERSION@" not in recipe
    [url] = re.findall(r"/releases/download/.*\.tar\.gz", recipe)
    assert url.replace("${{ version }}", version) == f"/releases/download/v{version}/{sdist.name}"


@pytest.mark.parametrize("name", ["spack/packages/spark-supplier/package.py", "conda/build-library.sh"])
def test_a_recipe_sets_options_that_exist(release, name):
    cmake = (ROOT / "mpi-client" / "CMakeLists.txt").read_text()
    declared = set(re.findall(r"(?:option|set)\((SUPPLY_\w+)", cmake))
    used = set(re.findall(r"SUPPLY_[A-Z_]+", (release / name).read_text()))
    assert used and used <= declared, used - declared


def test_conda_renders_the_recipe(release, version):
    python = ROOT / "build" / "release-venv" / "bin" / "python"
    done = run(python, "-c", RENDER, release / "conda", env=clean_environment())
    outputs = {tuple(json.loads(line)) for line in done.stdout.splitlines()}
    assert outputs == {
        ("libsupply", version, None),
        ("supply-mpi", version, "mpich"),
        ("supply-mpi", version, "openmpi"),
        ("spark-supplier", version, None),
    }


def test_the_conda_packages_work_in_an_empty_prefix(release, version, sdist, tmp_path):
    """By conda's own scripts, with the compiler and the libraries of this machine."""
    if subprocess.run(["pkg-config", "--exists", "openblas"]).returncode:
        pytest.skip("supply-mpi of conda needs OpenBLAS, which is not installed (make packages-offload)")
    with tarfile.open(sdist) as file:
        file.extractall(tmp_path)
    [source] = tmp_path.glob("spark_supplier-*")
    prefix = tmp_path / "prefix"
    environment = clean_environment(
        PREFIX=str(prefix), CPU_COUNT=str(os.cpu_count()), PKG_VERSION=version, LD_LIBRARY_PATH=str(prefix / "lib")
    )
    for name in ("libsupply", "supply-mpi"):
        before = set(prefix.rglob("*"))
        run("bash", release / "conda" / "build-library.sh", cwd=source, env={**environment, "PKG_NAME": name})
        added = {str(path.relative_to(prefix)) for path in set(prefix.rglob("*")) - before}
        mpi_only = {"bin/supply-server", "lib/libsupply_exchange.so", "lib/supply/libsupply_linalg.so"}
        assert added >= mpi_only if name == "supply-mpi" else not added & mpi_only
    # Other conda packages have the tools and the launchers.
    assert not (prefix / "bin" / "supply-cat").exists()
    run("bash", release / "conda" / "test-library.sh", cwd=tmp_path, env=environment)
    assert version in run(prefix / "bin" / "supply-server", "--version", env=environment).stdout
    build = tmp_path / "outside"
    run("cmake", "-S", OUTSIDE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DSUPPLY_VERSION={version}")
    run("cmake", "--build", build)
    assert f"libsupply {version} " in run(build / "outside", env=environment).stdout
    assert run(build / "outside-exchange", env=environment).stdout


def version_of(*command):
    """The version that a program prints."""
    return re.search(r"\d+\.\d+(\.\d+)?", run(*command).stdout)[0]


def write_settings(folder):
    """Settings of Spack: a package is one of this machine, or is not built at all."""
    commands = {
        "cmake": ("cmake", "--version"),
        "gmake": ("make", "--version"),
        "openmpi": ("mpirun", "--version"),
        "pkg-config": ("pkg-config", "--version"),
        "python": (SYSTEM_PYTHON, "--version"),
        **{name: ("pkg-config", "--modversion", name) for name in ("zlib", "jansson", "openblas")},
    }
    packages = {
        name: {"externals": [{"spec": f"{name}@{version_of(*command)}", "prefix": "/usr"}], "buildable": False}
        for name, command in commands.items()
    }
    providers = {"mpi": ["openmpi"], "pkgconfig": ["pkg-config"], "zlib-api": ["zlib"]}
    for interface in providers:
        packages[interface] = {"buildable": False}
    packages["all"] = {"providers": providers}
    for name, settings in {
        "packages": packages,
        "config": {"install_tree": {"root": f"{folder}/tree"}, "build_stage": [f"{folder}/stage"]},
    }.items():
        (folder / f"{name}.yaml").write_text(json.dumps({name: settings}))


def test_spack_installs_the_package(release, version, sdist, tmp_path):
    if not shutil.which("spack"):
        pytest.skip("Spack is not on PATH: its package is not installed (docs/INSTALL.md)")
    write_settings(tmp_path)
    environment = clean_environment(
        SPACK_USER_CONFIG_PATH=str(tmp_path), SPACK_SYSTEM_CONFIG_PATH=str(tmp_path / "none")
    )

    def spack(*arguments):
        return run("spack", *arguments, cwd=tmp_path, env=environment).stdout

    spack("compiler", "find")
    spack("repo", "add", release / "spack")
    spack("config", "add", f"packages:spark-supplier:package_attributes:url:'{sdist.as_uri()}'")
    spack("install", "--fresh", "--no-cache", "spark-supplier linalg=openblas")
    alias = f"release-{os.getpid()}"
    spack("test", "run", "--alias", alias, "spark-supplier")
    log = spack("test", "results", "--logs", alias)
    results = re.findall(r"^(PASSED|FAILED|SKIPPED): .*::(test_\w+)$", log, re.MULTILINE)
    assert set(results) == {("PASSED", f"test_{name}") for name in ("client", "mpi_client", "tools", "linalg")}
    prefix = spack("location", "--install-dir", "spark-supplier").strip()
    done = run(
        f"{prefix}/bin/supply-run", "--lmdb", DIGITS, "--ranks", "2", "--epochs", "1", "--", f"{prefix}/bin/supply-cat",
        "--count", cwd=tmp_path, env=clean_environment(SPARK_HOME=str(SPARK_HOME)),
    )  # fmt: skip
    assert sum(map(int, re.findall(r"^elements\t(\d+)$", done.stdout, re.MULTILINE))) == DIGITS_COUNT, done.stdout
