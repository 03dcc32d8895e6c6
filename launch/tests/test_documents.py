"""The documents agree with the tree: paths, commands and options. The site checks their links (test_site.py)."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from places import LAUNCH, ROOT

sys.path += [str(ROOT / "launch" / "tests" / "matrix"), str(ROOT / "launch" / "dev" / "lib")]

from session_matrix.programs import programs

from neighbours import NEIGHBOURS

MADE = {"build", "target", ".git"}


def files():
    """build/ may have whole root file systems (make test-matrix), so the folders of MADE are left out."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = set(folders) - MADE
        yield from (pathlib.Path(folder, name) for name in names)


FILES = list(files())
NAMES = {str(path.relative_to(ROOT)) for path in FILES}
DOCUMENTS = sorted(path for path in FILES if path.suffix == ".md")
MAKEFILE = "\n".join(file.read_text() for file in (ROOT / "Makefile", *sorted(ROOT.glob("mk/*.mk"))))
# Targets whose name is a variable in the Makefile.
MADE_BY = {"build/digits", "build/wheel-venv/.ready"}
END_OF_PATIENCE = 120

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def commands(document):
    """The shell commands of a page's code blocks, each on one line."""
    text = document.read_text().replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if re.match(r"( {4,}|exec )", line)]


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


def test_the_matrix_of_neighbours_has_every_row():
    page = (ROOT / "docs" / "design" / "packaging.md").read_text()
    table = page.partition("<!-- matrix -->")[2].partition("<!-- end of the matrix -->")[0]
    rows = re.findall(r"^\| ([A-Z][^:|]*?)(?::[^|]*)? \|", table, re.MULTILINE)
    assert rows == [each.name for each in NEIGHBOURS]


@each_document
def test_every_path_exists(document):
    for path in re.findall(r"`([\w./-]+\.(?:scala|c|h|pml|tsv|proto|py))`", document.read_text()):
        assert path == "layout.h" or any(f"/{name}".endswith(f"/{path}") for name in NAMES), path
    folders = "launch|bench|configs|proto|mpi-client|spark-supplier|docs|\\.ci"
    for path in re.findall(rf"(?<![\w/.-])((?:{folders})/[\w/.-]*\w)", document.read_text()):
        assert (
            path.startswith("spark-supplier/target") or (ROOT / path).exists() or (document.parent / path).exists()
        ), path


@pytest.mark.parametrize("name", ["overview", "decisions", "tour"])
def test_every_class_exists(name):
    sources = "".join(path.read_text() for path in FILES if path.suffix in {".scala", ".py"})
    classes = re.findall(r"`((?:[A-Z][a-z]+){2,})`", (ROOT / f"docs/design/{name}.md").read_text())
    assert [each for each in classes if not re.search(rf"\b{each}\b", sources)] == []


@each_document
def test_every_make_target_exists(document):
    for code in re.findall(r"`([^`]*)`", document.read_text()) + commands(document):
        words = re.sub(r"'[^']*'|#.*", "", code).split() if re.match(r"make\b", code) else []
        targets = [word for word in words[1:] if "=" not in word]
        assert all(re.search(rf"^{target}\b.*:", MAKEFILE, re.MULTILINE) or target in MADE_BY for target in targets), (
            code
        )


def run_help(program):
    return subprocess.run([program, "--help"], capture_output=True, text=True, timeout=END_OF_PATIENCE).stdout


@pytest.fixture(scope="module")
def options_of():
    """The options of a program, by its own help. Launchers pass those of the Supplier on."""
    helps = {}
    shared = (ROOT / "docs/OPTIONS.md").read_text() + run_help(LAUNCH / "supply-run")

    def options(program):
        if program not in helps:
            helps[program] = run_help(program) + (shared if program.parent == LAUNCH else "")
        return helps[program]

    return options


@each_document
def test_every_option_of_a_command_exists(document, options_of):
    for command in commands(document):
        started = re.search(r"(?:^|[\s&])(?:launch|build/mpi-client)/[\w/-]+", command)
        if started:
            program = ROOT / started[0].strip(" &")
            assert program.exists(), command
            for option in re.findall(r"(?<=\s)--[a-z-]+", command[started.end() :].split(" -- ")[0]):
                assert re.search(rf"{option}\b", options_of(program)), command


def test_the_protocol_names_every_field_that_the_table_has_constants_for():
    protocol = (ROOT / "proto/PROTOCOL.md").read_text()
    table = [line.split("\t") for line in (ROOT / "proto/layout.tsv").read_text().splitlines()[1:]]
    kinds = [row[1].split("_", 1)[1] for row in table if row[1].startswith(("NOTIFICATION_", "REQUEST_"))]
    assert [kind for kind in kinds if kind not in protocol] == []


def test_the_programs_for_every_session_are_in_the_pages():
    assert [("Supplier(" in each.text, "TorchEstimator(" in each.text) for each in programs()] == [
        (True, False), (True, False), (True, False), (True, False), (True, True),
    ]  # fmt: skip
