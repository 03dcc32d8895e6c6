"""The page with all tables and pictures of a run."""

import re

import matplotlib
from matplotlib import pyplot

from engine.figures import Table

matplotlib.use("Agg")


def _number(cell):
    """The median, at the start of a cell."""
    match = re.match(r"-?[0-9.]+", cell)
    return float(match[0]) if match else 0.0


def _name(table, row, picture):
    name = row[picture["x"]]
    return f"{name}\n{table['columns'][picture['group']]}: {row[picture['group']]}" if "group" in picture else name


# Of a page, and the style of pictures on it.
STYLES = {"light": "default", "dark": "dark_background"}


def draw(table, folder, name):
    """Draws a table of a benchmark's JSON, for light and dark pages. Returns its Markdown; "": it has no picture."""
    if not table["picture"]:
        return ""
    for page, style in STYLES.items():
        with pyplot.style.context(style):
            _draw(table, folder / f"{name}-{page}.png")
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{name}-dark.png">'
        f'<img alt="{table["title"]}" src="{name}-light.png"></picture>'
    )


def _draw(table, file):
    picture = table["picture"]
    figure, axes = pyplot.subplots(figsize=(max(6, 0.9 * len(table["rows"])), 4), layout="constrained")
    names = [_name(table, row, picture) for row in table["rows"]]
    if "line" in picture:
        axes.plot(range(len(names)), [_number(row[picture["line"]]) for row in table["rows"]], marker=".")
        axes.set_xlabel(table["columns"][picture["x"]])
        axes.set_ylabel(table["columns"][picture["line"]])
    else:
        width = 0.8 / len(picture["bars"])
        for i, column in enumerate(picture["bars"]):
            places = [n + i * width for n in range(len(names))]
            axes.bar(places, [_number(row[column]) for row in table["rows"]], width, label=table["columns"][column])
        axes.set_xticks([n + 0.4 - width / 2 for n in range(len(names))], names, fontsize=7)
        axes.legend(fontsize=8)
    axes.set_ylim(bottom=0)
    axes.set_title(table["title"], fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


TARGETS = {
    "cycle_ratio_192k": 0.90,
    "cycle_ratio_1m": 0.90,
    "lmdb_ratio_256": 1.0,
    "lmdb_ratio_28": 0.9,
    "lmdb_in_place_vs_copied_256": 2,
    "small_elements_per_s": 8_000_000,
    "vs_tcp": 5,
    "vs_file_per_partition": 8,
    "read_ratio": 0.95,
    "resident_ratio": 0.95,
    "df_vs_parquet": 5,
    "df_vs_arrow_socket": 5,
    "df_vs_local_iterator": 5,
    "call_vs_partition_files_first_batch": 5,
    "call_vs_partition_files_first_batch_400k": 5,
    "call_vs_partition_files": 2,
    "call_vs_partition_files_400k": 2,
    "results_vs_map_in_pandas": 3,
    "results_vs_map_in_pandas_processor": 3,
    "offload_svd_200k": 3.5,
    "offload_svd_200k_vs_compute_svd": 6,
    "offload_svd_20k": 1,
    "offload_svd_2000_columns": 2.5,
    "offload_pca_2000_columns": 5,
    "offload_kmeans": 8,
    "offload_ridge": 3,
    "offload_gram_vector": 9,
    "offload_transfer_vs_socket": 3,
    "offload_transfer_vs_cycle": 0.67,
}
# Figures that must not be larger.
LIMITS = {
    "lmdb_task_ns_28": 250,
    "lmdb_task_ns_256": 250,
    "df_first_batch_s": 2,
    "block_tensors_us": 25,
    "block_batch_us": 25,
    "call_disk_bytes": 0,
    "call_disk_bytes_400k": 0,
}


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
    """The notes about figures below their target."""
    notes = {key: note for output in outputs for key, note in output["notes"].items()}
    return [(key, notes[key]) for key, target in TARGETS.items() if key in notes and summary[key] < target]


def write(file, outputs, summary):
    """Writes the report of `outputs`, the JSON of each benchmark, in their order."""
    machine = outputs[0]["machine"]
    lines = [
        "# What the benchmarks measured",
        "",
        f"{machine['processor']}, {machine['cores']} cores, last-level cache {machine['last_level_cache']}, "
        f"{machine['memory_bytes'] / (1 << 30):.0f} GiB, Linux {machine['kernel']}; "
        f"load before the run {machine['load_before']:.1f}.",
        "bench/README.md says how each figure is computed, and against which baseline.",
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
            picture = draw(table, file.parent, f"{output['benchmark']}-{number}")
            if picture:
                lines += [picture, ""]
        lines += [f"WRONG: {line}" for line in output["wrong"]]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def as_table(written):
    table = Table(written["title"], written["columns"])
    for row in written["rows"]:
        table.add(*row)
    return table
