"""The page with all tables and pictures of a run of the suite."""

from engine import picture
from engine.table import Table

TARGETS = {
    "cycle_ratio_192k": 0.90,
    "cycle_ratio_1m": 0.90,
    "lmdb_ratio_256": 0.85,
    "lmdb_ratio_28": 0.50,
    "small_elements_per_s": 8_000_000,
    "vs_tcp": 5,
    "vs_file_per_partition": 8,
    "read_ratio": 0.95,
    "resident_ratio": 0.95,
    "df_vs_parquet": 5,
    "df_vs_arrow_socket": 5,
    "df_vs_local_iterator": 5,
}
# Figures that are to be no larger.
LIMITS = {"df_first_batch_s": 2}


def summary_table(summary):
    table = Table("Summary", ["figure", "value", "target", "reached"])
    for key, value in sorted(summary.items()):
        shown = str(value) if isinstance(value, bool) else f"{value:.4g}"
        table.add(key, shown, *_target(key, value))
    return table


def _target(key, value):
    if key in TARGETS:
        return f"{TARGETS[key]:g}", "yes" if value >= TARGETS[key] else "no"
    if key in LIMITS:
        return f"at most {LIMITS[key]:g}", "yes" if value <= LIMITS[key] else "no"
    return "–", "–"


def missed(outputs, summary):
    """What is noted about figures below their target."""
    notes = {key: note for output in outputs for key, note in output["notes"].items()}
    return [(key, notes[key]) for key, target in TARGETS.items() if key in notes and summary[key] < target]


def write(file, outputs, summary):
    """`outputs`: the JSON of each benchmark, in the order of the report."""
    machine = outputs[0]["machine"]
    lines = [
        "# What the benchmarks measured",
        "",
        f"{machine['processor']}, {machine['cores']} cores, last-level cache {machine['last_level_cache']}, "
        f"{machine['memory_bytes'] / (1 << 30):.0f} GiB, Linux {machine['kernel']}; "
        f"load before the run {machine['load_before']:.1f}.",
        "How each figure is computed, and what the limit beside it is: bench/README.md.",
        "",
        "## Summary",
        "",
        summary_table(summary).markdown(),
        "",
        *[f"* `{key}` misses its target: {note}." for key, note in missed(outputs, summary)],
        "",
    ]
    for output in outputs:
        lines += [f"## {output['benchmark']}", ""]
        for number, table in enumerate(output["tables"]):
            lines += [f"### {table['title']}", "", as_table(table).markdown(), ""]
            name = f"{output['benchmark']}-{number}.png"
            if picture.draw(table, file.parent / name):
                lines += [f"![{table['title']}]({name})", ""]
        lines += [f"WRONG: {line}" for line in output["wrong"]]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def as_table(written):
    table = Table(written["title"], written["columns"])
    for row in written["rows"]:
        table.add(*row)
    return table
