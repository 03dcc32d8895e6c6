"""The documents agree with the files."""

import re

import pytest

from places import ROOT

DOCUMENTS = sorted(path for path in ROOT.rglob("*.md") if not {"build", "target"} & set(path.relative_to(ROOT).parts))


def test_the_client_in_the_readme_is_the_example():
    code = re.search(r"```c\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    assert code == (ROOT / "mpi-client/examples/minimal.c").read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file(document):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_protocol_names_every_field_that_the_table_has_constants_for():
    protocol = (ROOT / "proto/PROTOCOL.md").read_text()
    table = [line.split("\t") for line in (ROOT / "proto/layout.tsv").read_text().splitlines()[1:]]
    kinds = [row[1].split("_", 1)[1] for row in table if row[1].startswith(("NOTIFICATION_", "REQUEST_"))]
    assert [kind for kind in kinds if kind not in protocol] == []
