"""The page with all figures and tables of a run."""

from engine import quiet
from engine.figures import Table

DISTURBED = f"Others disturb a round if they have more than {quiet.LIMIT:.0%} of the processors."
COMPUTED = "bench/README.md says how each figure is computed, and against which baseline."


def figures_of(outputs):
    """The figures of all benchmarks by name, as summary.json has them."""
    return dict(sorted((key, figure) for output in outputs for key, figure in output["figures"].items()))


def summary_table(figures):
    table = Table("Summary", ["figure", "median", "95 % interval", "disturbed rounds"])
    for key, figure in figures.items():
        interval = "–".join(f"{end:.4g}" for end in figure["interval"]) if figure["interval"] else "–"
        disturbed = f"{figure['disturbed']} of {figure['rounds']}" if figure["rounds"] else "–"
        table.add(key, f"{figure['value']:.4g}", interval, disturbed)
    return table


def text(outputs):
    """The report of `outputs`, the JSON of each benchmark."""
    machine = outputs[0]["machine"]
    lines = ["# Figures of the benchmarks", "", summary_table(figures_of(outputs)).markdown(), ""]
    lines += [COMPUTED, DISTURBED, "", "## The machine", ""]
    lines += [
        f"{machine['processor']}, {machine['cores']} cores, last-level cache {machine['last_level_cache']}, "
        f"{machine['memory_bytes'] / (1 << 30):.0f} GiB, Linux {machine['kernel']}.",
        "",
    ]
    for output in outputs:
        lines += [f"## {output['benchmark']}", ""]
        for table in output["tables"]:
            lines += [f"### {table['title']}", "", Table(**table).markdown(), ""]
        lines += [f"WRONG: {line}\n" for line in output["wrong"]]
    return "\n".join(lines[:-1]) + "\n"
