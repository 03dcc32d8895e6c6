#!/usr/bin/env python3
"""Prints the table of the last run of each cell (make test-matrix), and writes it into docs/design/packaging.md."""

import pathlib
import re
import sys
import xml.etree.ElementTree

from neighbours import CHECKS, NEIGHBOURS

ROOT = pathlib.Path(__file__).resolve().parents[3]
BEGIN, END = "<!-- matrix -->\n", "<!-- end of the matrix -->\n"


def outcomes(reports):
    """By row and check: the last outcome, and why a cell was not run. By row: what its system is."""
    cells, systems = {}, {}
    for case in (case for report in reports for case in _cases(report)):
        # The name of what cannot be collected has no brackets.
        named = re.fullmatch(r"test_(\w+)\[(.*)\]", case.get("name"))
        if named is None:
            continue
        check, row = named.groups()
        skipped = case.find("skipped")
        failed = case.find("failure") is not None or case.find("error") is not None
        cells[row, check] = ("failed", "") if failed else ("passed", "")
        if skipped is not None:
            cells[row, check] = ("–", skipped.get("message"))
        for each in case.iter("property"):
            systems[row] = each.get("value")
    return cells, systems


def _cases(report):
    try:
        return xml.etree.ElementTree.parse(report).iter("testcase")
    except xml.etree.ElementTree.ParseError as error:
        print(f"matrix: {report} is skipped: {error}", file=sys.stderr)
        return ()


def table(cells, systems):
    notes = []
    lines = [f"| | {' | '.join(CHECKS.values())} |", "|---" * (len(CHECKS) + 1) + "|"]
    for each in NEIGHBOURS:
        words = [f"{each}: {systems[each.name]}" if each.name in systems else str(each)]
        for check in CHECKS:
            outcome, why = cells.get((each.name, check), ("not run", "")) if check in each.checks else ("", "")
            if why and why not in notes:
                notes.append(why)
            words.append(f"{outcome} ({notes.index(why) + 1})" if why else outcome)
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(
        [*lines, "", *(f"{number}. {why}" for number, why in enumerate(notes, 1)), *([""] if notes else [])]
    )


def main():
    # Their names are the times of the runs.
    reports = sorted((ROOT / "build" / "matrix" / "reports").glob("*.xml"))
    cells, systems = outcomes(reports)
    text = table(cells, systems)
    print(text)
    page = ROOT / "docs" / "design" / "packaging.md"
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"matrix: error: {page} lacks {BEGIN.strip()} or {END.strip()}")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
