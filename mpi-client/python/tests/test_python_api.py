"""docs/PYTHON-API.md is what the sources say. A public name without a docstring fails, too."""

import runpy

from layout import ROOT


def test_the_page_agrees_with_the_sources():
    text = runpy.run_path(str(ROOT / "launch" / "dev" / "python_api.py"))["text"]()
    page = (ROOT / "docs" / "PYTHON-API.md").read_text(encoding="utf-8")
    assert page == text, "write it again: make reference, or PYTHON launch/dev/python_api.py docs/PYTHON-API.md"
