"""The table in docs/TESTED.md: a column for each session, as of its last run."""

import sys

from session_matrix.programs import ROOT, programs
from session_matrix.sessions import SESSIONS

PAGE = ROOT / "docs" / "TESTED.md"
BEGIN, END = "<!-- sessions -->\n", "<!-- end of the sessions -->\n"
LAST_ROW = "run"


def write(title, run, cells):
    """A session's cells by program, in place of its column."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    old, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"session-matrix: error: {PAGE} lacks {BEGIN.strip()} or {END.strip()}")
    columns = _columns(old) | {title: {**cells, LAST_ROW: run}}
    PAGE.write_text(f"{before}{BEGIN}\n{_lines(columns)}\n{END}{after}")


def _columns(text):
    """By session: its cells by row."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in row] for row in rows if not row[0].startswith("---")]
    if not rows:
        return {}
    return {title: {row[0]: row[i] for row in rows[1:]} for i, title in enumerate(rows[0]) if i > 0}


def _lines(columns):
    titles = [title for title, _ in SESSIONS.values()]
    lines = [f"| | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for row in [*(program.name for program in programs()), LAST_ROW]:
        cells = [columns.get(title, {}).get(row, "not run").replace("|", "/") for title in titles]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)
