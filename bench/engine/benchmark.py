"""What every benchmark does around its measuring: flags, tables, JSON, floors, the verdict."""

import json
import sys

from engine import ending, floors, machine, options as flags, paths
from engine.failure import BenchError


class Results:
    """What one benchmark has found. `notes`: for figures of the summary, what the time goes into where they miss their target."""

    def __init__(self, name):
        self.name = name
        self.tables = []
        self.summary = {}
        self.notes = {}
        self.cases = []
        self.wrong = []

    def case(self, about, measured):
        """Notes a measured configuration, and what is wrong with its data."""
        self.cases.append({**about, **measured})
        self.wrong += [f"{self.name} {about}: {line}" for line in measured.get("wrong", [])]

    def table(self, table):
        self.tables.append(table)
        print(table.text(), end="\n\n", flush=True)

    def as_json(self, options, about):
        return {
            "benchmark": self.name,
            "machine": about,
            "options": {key: value for key, value in vars(options).items() if key not in ("json", "floor")},
            "summary": self.summary,
            "notes": self.notes,
            "verified": not self.wrong,
            "wrong": self.wrong,
            "tables": [
                {"title": t.title, "columns": t.columns, "rows": t.rows, "picture": t.picture} for t in self.tables
            ],
            "cases": self.cases,
        }


def main(name, description, measure, default_sizes, default_repetitions=21):
    """Runs `measure(options, results)` with the command line's options; exits with the verdict."""
    paths.run_in_venv()
    ending.on_sigterm()
    options = flags.settle(flags.parser(name, description).parse_args(), default_sizes, default_repetitions)
    results = Results(name)
    about = machine.describe()
    try:
        measure(options, results)
    except BenchError as error:
        sys.exit(f"bench/{name}: error: {error}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results.as_json(options, about), indent=1) + "\n", encoding="utf-8")
    for key, value in sorted(results.summary.items()):
        print(f"{key} {value:.4g}")
    failures = results.wrong + floors.missed(options.floor, results.summary)
    for line in failures:
        print(f"bench/{name}: error: {line}", file=sys.stderr)
    sys.exit(1 if failures else 0)
