"""A Debian for arm64 whose programs qemu runs, with the wheel and the C tests for it: `make test-arm64`."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "release")]

from installing import ROOT, SYSTEM_PYTHON, clean_environment, overlay, run

BUILD = ROOT / "build" / "arm64"
SYSTEM = BUILD / "system"
USE_WHEEL = ROOT / "launch" / "tests" / "matrix" / "use_wheel.sh"
PACKAGES = (
    "base-passwd", "bash", "coreutils", "dash", "gawk", "grep", "hostname", "libc6-dev", "libgtest-dev",
    "libjansson-dev", "libopenmpi-dev", "mount", "openjdk-17-jre-headless", "openmpi-bin", "procps", "python3-mpi4py",
    "python3-numpy", "python3-torch", "python3-venv", "sed", "util-linux", "zlib1g-dev",
)  # fmt: skip
TOOLS = ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-gcc", "mmdebstrap", "qemu-aarch64-static", "unshare")
FORMATS = pathlib.Path("/proc/sys/fs/binfmt_misc")
# A 64-bit ELF program or library for AArch64, little-endian. F: the kernel opens qemu now, and not in the other system.
FORMAT = (
    r":supply-arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:"
    r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:%s:F"
)


def runs_arm64():
    """Whether the kernel starts programs for arm64, also in another root."""
    found = [path.read_text() for path in FORMATS.glob("*") if path.name not in ("register", "status")]
    return any("aarch64-static" in text and re.search("^flags: .*F", text, re.MULTILINE) for text in found)


@contextlib.contextmanager
def registered():
    """The kernel starts programs for arm64 meanwhile. The registration is the kernel's own, also for other roots."""
    is_mounted = (FORMATS / "register").exists()
    if not is_mounted:
        subprocess.run(["mount", "-t", "binfmt_misc", "none", FORMATS], capture_output=True)
    try:
        if runs_arm64():
            yield
            return
        try:
            (FORMATS / "register").write_text(FORMAT % shutil.which("qemu-aarch64-static"))
        except OSError as error:
            pytest.skip(f"this kernel does not start programs by qemu (binfmt_misc): {error.strerror}")
        try:
            yield
        finally:
            (FORMATS / "supply-arm64").write_text("-1")
    finally:
        if not is_mounted:
            subprocess.run(["umount", FORMATS], capture_output=True)


@pytest.fixture(scope="session")
def system():
    """The root of the system."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        pytest.skip(f"a system for arm64 needs {', '.join(missing)} (launch/dev/install-packages --for-arm64)")
    if os.geteuid() != 0:
        pytest.skip("a system for arm64 needs root, to start its programs")
    run(ROOT / "launch" / "dev" / "unpack-arm64", SYSTEM, *PACKAGES)
    with registered():
        yield SYSTEM


@pytest.fixture(scope="session")
def inside(system, tmp_path_factory):
    """Runs a script in a copy of the system, with the checkout at the same place. Returns the finished process."""

    def run_script(script, timeout=1200, **variables):
        command, reason = overlay(tmp_path_factory.mktemp("system"), system)
        if not command:
            pytest.skip(reason)
        environment = clean_environment(
            HOME="/root", LANG="C.UTF-8", PATH="/usr/sbin:/usr/bin:/sbin:/bin", TMPDIR="/tmp", **variables
        )
        environment.pop("JAVA_HOME", None)
        # As every installed system, it knows its own name.
        script = 'echo "127.0.0.1 localhost $(uname -n)" > /etc/hosts\ncd /tmp\n' + script
        return subprocess.run(
            [*command, script], capture_output=True, text=True, errors="replace", env=environment, timeout=timeout
        )

    return run_script


@pytest.fixture(scope="session")
def c_tests(system):
    """The folder of the library, the tools and the C tests, compiled for the system."""
    folder, libraries = BUILD / "mpi-client", system / "usr/lib/aarch64-linux-gnu"
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_SYSROOT": system,
        "CMAKE_C_COMPILER": "aarch64-linux-gnu-gcc",
        "CMAKE_CXX_COMPILER": "aarch64-linux-gnu-g++",
        "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM": "NEVER",
        **{f"CMAKE_FIND_ROOT_PATH_MODE_{kind}": "ONLY" for kind in ("LIBRARY", "INCLUDE", "PACKAGE")},
        # CMake cannot start the compiler of this MPI.
        "MPI_C_HEADER_DIR": libraries / "openmpi/include",
        "MPI_C_LIB_NAMES": "mpi",
        "MPI_mpi_LIBRARY": libraries / "libmpi.so.40",
        "MPIRUN": "/usr/bin/mpirun",
        "SUPPLY_LINALG": "none",
        "SUPPLY_WARNINGS_AS_ERRORS": "ON",
        "CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE": "PRE_TEST",
    }
    environment = clean_environment()
    run(
        "cmake",
        "-S",
        ROOT / "mpi-client",
        "-B",
        folder,
        *(f"-D{name}={value}" for name, value in settings.items()),
        env=environment,
    )
    run("cmake", "--build", folder, "--parallel", str(os.cpu_count()), env=environment)
    return folder


@pytest.fixture(scope="session")
def python(inside):
    """The Python of an environment in the system, with the wheel for it."""
    work, wheels, spark = (BUILD / name for name in ("work", "wheels", "spark"))
    for folder in (work, wheels, spark):
        shutil.rmtree(folder, ignore_errors=True)
    run(ROOT / "launch/dev/build-wheels", wheels, "python3.11", env=clean_environment(MACHINE="aarch64"))
    [wheel] = wheels.glob("*.whl")
    assert re.search(r"-cp311-cp311-manylinux.*_aarch64\.whl$", wheel.name)
    # PySpark and tqdm are for any machine.
    run(SYSTEM_PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--target", spark, "tqdm>=4.66.3")
    for path in (ROOT / "build/venv").glob("lib/python3*/site-packages/py[s4]*"):
        (spark / path.name).symlink_to(path.resolve())
    work.mkdir()
    variables = {"WORK": work, "RELEASE": wheels, "SPARK": spark, "PYTHON": SYSTEM_PYTHON, "SYSTEM_PACKAGES": "1"}
    done = inside(f"sh {USE_WHEEL} true", PIP_NO_INDEX="1", **{name: str(value) for name, value in variables.items()})
    assert done.returncode == 0, done.stderr
    return work / "env/bin/python"
