"""Code in the documents is that of the tree. `make lint-docs` checks paths, commands, options and messages."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from places import ROOT

sys.path.append(str(ROOT / "launch" / "tests" / "sessions"))

from programs import programs


@pytest.mark.parametrize(("page", "example"), [("README.md", "minimal.c"), ("docs/LMDB.md", "datums.c")])
def test_the_client_on_the_page_is_the_example(page, example):
    code = re.search(r"```c\n(.*?)```", (ROOT / page).read_text(), re.DOTALL).group(1)
    assert code == (ROOT / "mpi-client/examples" / example).read_text()


def test_the_scala_example_is_compiled():
    code = re.search(r"```scala\n(.*?)```", (ROOT / "docs/OFFLOAD.md").read_text(), re.DOTALL).group(1)
    compiled = (ROOT / "spark-supplier/src/test/scala/supply/testing/OnRanks.scala").read_text()
    assert compiled == f"package supply.testing\n\n{code}"


def test_the_pages_name_the_version():
    """That of files, and before 1.0 the minor one in the names of the library's package and of CMake's."""
    header = (ROOT / "mpi-client" / "include" / "supply.h").read_text()
    version = ".".join(re.findall(r"^#define SUPPLY_VERSION_[A-Z]+ (\d+)$", header, re.MULTILINE))
    pages = ("docs/INSTALL.md", "docs/C-AND-MPI.md", "docs/design/packaging.md", "mpi-client/README.md")
    text = "".join((ROOT / page).read_text() for page in pages)
    assert set(re.findall(r"spark[_-]supplier(?:-[\d.]+_[\d.]+)?[-@:](\d+\.\d+\.\d+)", text)) == {version}
    library = re.findall(r"`libsupply([\d.]+)`|\(Supply ([\d.]+) ", text)
    assert {"".join(each) for each in library} == {version.rpartition(".")[0]} and len(library) == 4


def test_the_page_of_types_has_the_table(tmp_path):
    page = shutil.copy(ROOT / "docs/TYPES.md", tmp_path)
    subprocess.run([sys.executable, ROOT / "proto/make_tables.py", page], check=True)
    assert pathlib.Path(page).read_text() == (ROOT / "docs/TYPES.md").read_text(), "write it again: make reference"


def test_the_protocol_names_every_field_that_the_table_has_constants_for():
    protocol = (ROOT / "proto/PROTOCOL.md").read_text()
    table = [line.split("\t") for line in (ROOT / "proto/layout.tsv").read_text().splitlines()[1:]]
    kinds = [row[1].split("_", 1)[1] for row in table if row[1].startswith(("NOTIFICATION_", "REQUEST_"))]
    assert [kind for kind in kinds if kind not in protocol] == []


def test_the_programs_for_every_session_are_in_the_pages():
    assert [("Supplier(" in each.text, "TorchEstimator(" in each.text) for each in programs()] == [
        (True, False), (True, False), (True, False), (True, False), (True, True),
    ]  # fmt: skip
