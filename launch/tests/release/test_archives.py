"""The Debian packages and the tarball of a release: installed, and used for a program in C and a run."""

import io
import pathlib
import re
import tarfile

import pytest

import installing
from installing import DIGITS, DIGITS_COUNT, EXAMPLES, ROOT, USE, clean_environment, run

SPARK_HOME = next(ROOT.glob("build/venv/lib/python3*/site-packages/pyspark"), None)
OUTSIDE = ROOT / "mpi-client" / "tests" / "package" / "outside"


@pytest.fixture
def overlay(tmp_path):
    """A command that runs a script in a copy of this system: what it writes is gone afterwards."""
    command, reason = installing.overlay(tmp_path)
    if not command:
        pytest.skip(reason)
    return command


def check_use(output, version):
    for tool in ("supply-cat", "supply-clean", "supply-stat", "supply-doctor"):
        assert f"{tool} {version} (contract" in output
    assert sum(map(int, re.findall(r"rank \d: (\d+) elements", output))) == DIGITS_COUNT


def test_apt_installs_the_packages(release, version, library, overlay, tmp_path):
    packages = " ".join(f"'{path}'" for path in sorted(release.glob("*.deb")))
    script = f"""
export DEBIAN_FRONTEND=noninteractive
apt-get install --yes --no-install-recommends {packages}
dpkg --verify libsupply{library} libsupply-dev supply-mpi supply-tools
mkdir /tmp/user
export WORK=/tmp/user PREFIX=/usr EXAMPLES='{EXAMPLES}' LMDB='{DIGITS}' SPARK_HOME='{SPARK_HOME}'
sh '{USE}'
cd /tmp/user
ldd datums | grep '/usr/lib/x86_64-linux-gnu/libsupply.so.{library}\\|/lib/x86_64-linux-gnu/libsupply.so.{library}'
cmake -S '{OUTSIDE}' -B build -DSUPPLY_VERSION={version} && cmake --build build && build/outside
apt-get remove --yes libsupply{library}
! test -e /usr/bin/supply-server
"""
    output = run(*overlay, script, env=clean_environment()).stdout
    check_use(output, version)


def test_each_program_has_a_man_page_in_its_package(release):
    programs = []
    for package in release.glob("*.deb"):
        files = run("dpkg-deb", "--fsys-tarfile", package, text=False).stdout
        with tarfile.open(fileobj=io.BytesIO(files)) as file:
            names = [pathlib.PurePath(member.name) for member in file if member.isfile()]
            pages = {name.stem: file.extractfile(f"./{name}").read().decode() for name in names if name.match("man1/*")}
        of_package = {name.name for name in names if name.parent == pathlib.PurePath("usr/bin")}
        assert pages.keys() == of_package, package.name
        for program, page in pages.items():
            assert f"\n.SH NAME\n{program} \\- " in page, program
            for section in ("SYNOPSIS", "DESCRIPTION", "OPTIONS", '"SEE ALSO"'):
                assert f"\n.SH {section}\n" in page, (program, section)
            # They have other names than in a checkout.
            assert "launch/" not in page.replace("launch/dev/", ""), program
        programs += of_package
    assert {"supply-cat", "supply-run", "supply-server", "supplier"} <= set(programs)


def test_the_libraries_need_only_what_they_say(release, version, library):
    depends = {
        path.name.partition("_")[0]: run("dpkg-deb", "--field", path, "Depends").stdout
        for path in release.glob("*.deb")
    }
    assert re.fullmatch(r"libc6 \(>= [0-9.]+\)", depends[f"libsupply{library}"].strip())
    [package] = release.glob("supply-mpi_*.deb")
    assert "libopenmpi-dev" in run("dpkg-deb", "--field", package, "Recommends").stdout
    assert "libopenmpi" in depends["supply-mpi"] and f"libsupply{library} (= {version})" in depends["supply-mpi"]
    summaries = {
        run("dpkg-deb", "--field", path, "Description").stdout.splitlines()[0] for path in release.glob("*.deb")
    }
    assert len(summaries) == len(depends)
    assert "openmpi" not in depends["supply-tools"] and "python3" in depends["supply-tools"]


def test_the_tarball_works_in_any_folder(release, version, tmp_path):
    with tarfile.open(release / f"spark-supplier-{version}-linux-x86_64.tar.gz") as file:
        file.extractall(tmp_path)
    [prefix] = tmp_path.iterdir()
    libraries = prefix / "lib" / "x86_64-linux-gnu"
    (tmp_path / "user").mkdir()
    environment = clean_environment(
        WORK=str(tmp_path / "user"),
        PREFIX=str(prefix),
        EXAMPLES=str(EXAMPLES),
        LMDB=str(DIGITS),
        SPARK_HOME=str(SPARK_HOME),
        PKG_CONFIG_PATH=str(libraries / "pkgconfig"),
        LD_LIBRARY_PATH=str(libraries),
    )
    check_use(run("sh", USE, env=environment).stdout, version)
