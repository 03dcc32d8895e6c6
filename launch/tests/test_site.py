"""The documentation site: every page is in it, nothing comes from another host, and mistakes fail its build."""

import json
import os
import re
import shutil
import subprocess

import pytest

from places import BUILD, ROOT

# `make lint` builds the site, which fails for most of this.
pytestmark = pytest.mark.long
MKDOCS = BUILD / "docs-venv" / "bin" / "mkdocs"
# Each document, or a new one, and what its build says.
MISTAKES = {
    "docs/RANKS.md": ("[a file](MISSING.md)", "docs/RANKS.md: the link MISSING.md leads to no file"),
    "docs/LMDB.md": ("[a built file](../build/report.md)", "the link ../build/report.md leads to no file"),
    "docs/OFFLOAD.md": ("[a source](../mpi-client/src/missing.c)", "missing.c leads to no file"),
    "docs/EXCHANGE.md": ("[a heading](RANKS.md#missing)", "does not contain an anchor '#missing'"),
    "docs/COMING-FROM.md": ("[here](#missing)", "contains a link '#missing', but there is no such anchor"),
    "docs/FEEDERS.md": ("[absolute](/docs/RANKS.md)", "contains an absolute link '/docs/RANKS.md'"),
    "docs/SECURITY.md": ('<a href="RANKS.md#missing">x</a>', "RANKS.md#missing names no heading of docs/RANKS.md"),
    "docs/YARN.md": ('<img src="pictures/missing.svg">', "pictures/missing.svg leads to no file"),
    "docs/FAILURES.md": ('<picture><source srcset="missing.svg"></picture>', "missing.svg leads to no file"),
    "docs/TUTORIAL.md": ("| a |\n|---|\n| `b\\|c` |", "docs/TUTORIAL.md: after"),
    "docs/NEW.md": ("# New", 'not included in the "nav" configuration:\n  - docs/NEW.md'),
}
PICTURE = """
<picture>
  <source media="(prefers-color-scheme: dark)" srcset="docs/pictures/dark.svg">
  <img src="docs/pictures/light.svg" alt="A picture">
</picture>
<a href="docs/INSTALL.md#pip">Install</a>

[A picture](docs/pictures/light.svg)
"""


def build(tree, site):
    """The finished build of the site of a tree, as `make docs` starts it."""
    assert MKDOCS.exists(), "run 'make docs' first"
    command = [MKDOCS, "build", "--config-file", tree / "configs/dev/docs/mkdocs.yml", "--site-dir", site]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DOCS_REF": "v1.2.3"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def documents():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    return subprocess.check_output(command, cwd=ROOT, text=True).splitlines()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    """What the build of a copy of the documents with all mistakes says, and its site."""
    tree, folder = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("mistaken")
    # Sources need not be there to be linked: only their folders and names are.
    for path in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).touch()
    for path in documents():
        shutil.copy(ROOT / path, tree / path)
    shutil.copytree(ROOT / "configs/dev/docs", tree / "configs/dev/docs", dirs_exist_ok=True)
    shutil.copy(ROOT / ".gitignore", tree)
    (tree / "build").mkdir()
    (tree / "build/report.md").touch()
    (tree / "docs/pictures").mkdir(exist_ok=True)
    for name in ("light", "dark"):
        (tree / f"docs/pictures/{name}.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    for path, (text, _) in {**MISTAKES, "README.md": (PICTURE, "")}.items():
        with open(tree / path, "a") as file:
            file.write(f"\n{text}\n")
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    done = build(tree, folder)
    assert done.returncode == 1
    return done.stderr, folder


def test_every_page_can_be_searched(site):
    entries = json.loads((site / "search/search_index.json").read_text())["docs"]
    pages = {entry["location"] for entry in entries if "#" not in entry["location"]}
    assert pages == {re.sub(r"README\.md$", "index.html", path).replace(".md", ".html") for path in documents()}


def test_a_link_to_a_source_leads_to_the_tag_of_the_repository(site):
    address = "https://github.com/spark-supplier/spark-supplier"
    assert f"<url>{address}</url>" in (ROOT / "spark-supplier/pom.xml").read_text()
    assert f'href="{address}/blob/v1.2.3/mpi-client/examples/minimal.c"' in (site / "docs/C-AND-MPI.html").read_text()
    assert f'href="{address}/tree/v1.2.3/launch"' in (site / "launch/dev/index.html").read_text()


def test_nothing_is_loaded_from_another_host(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?!a\b)\w+[^>]*\s(?:src|srcset|href)=\"?(?:https?:)?//[^>]*>", page.read_text())
        assert loaded == [], page


@pytest.mark.parametrize("path", MISTAKES)
def test_a_mistake_fails_the_build(mistaken, path):
    said, _ = mistaken
    assert MISTAKES[path][1] in said


def test_pictures_and_links_in_html_lead_to_the_files_of_the_site(mistaken):
    said, site = mistaken
    page = (site / "index.html").read_text()
    assert "README.md" not in said
    assert 'srcset="docs/pictures/dark.svg"' in page
    assert '<img src="docs/pictures/light.svg"' in page
    assert '<a href="docs/INSTALL.html#pip">' in page
    assert {path.name for path in (site / "docs/pictures").iterdir()} >= {"dark.svg", "light.svg"}
