"""The page with all tables and pictures of a run."""

import re

import matplotlib
from matplotlib import pyplot

from engine import chart, quiet, targets
from engine.figures import Table, leading_number
from engine.machine import BenchError

matplotlib.use("Agg")


def _name(table, row, picture):
    name = row[picture["x"]]
    return f"{name}\n{table['columns'][picture['group']]}: {row[picture['group']]}" if "group" in picture else name


QUIET = (
    f"A round is marked if others used more than {quiet.LIMIT:.0%} of the processors. "
    f"A figure with more than {quiet.MARKED_LIMIT:.0%} marked rounds is not quiet."
)
# Of a benchmark: which of its tables a published page has.
PUBLISHED = {**dict.fromkeys(("cycle", "alternatives", "dataframes", "predictions", "offload"), [0]), "one_call": [1]}
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
        axes.plot(range(len(names)), [leading_number(row[picture["line"]]) for row in table["rows"]], marker=".")
        axes.set_xlabel(table["columns"][picture["x"]])
        axes.set_ylabel(table["columns"][picture["line"]])
    else:
        width = 0.8 / len(picture["bars"])
        for i, column in enumerate(picture["bars"]):
            places = [n + i * width for n in range(len(names))]
            axes.bar(
                places, [leading_number(row[column]) for row in table["rows"]], width, label=table["columns"][column]
            )
        axes.set_xticks([n + 0.4 - width / 2 for n in range(len(names))], names, fontsize=7)
        axes.legend(fontsize=8)
    axes.set_ylim(bottom=0)
    axes.set_title(table["title"], fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def figures_of(outputs):
    """The figures of all benchmarks by name, as summary.json has them."""
    figures = {}
    for output in outputs:
        for key, value in output["summary"].items():
            about = output["figures"].get(key, {"interval": None, "rounds": None, "marked": None})
            figures[key] = {"value": value, **about, "target": targets.target_text(key)}
            figures[key]["verdict"] = targets.verdict(key, figures[key])
    return dict(sorted(figures.items()))


def summary_table(figures, published=False):
    """A published page has the figures with a target, and not how many of their rounds are marked."""
    columns = ["figure", "median", "95 % interval", "target", "verdict", "marked rounds"]
    table = Table("Summary", columns[:-1] if published else columns)
    for key, figure in figures.items():
        interval = "–".join(f"{end:.4g}" for end in figure["interval"]) if figure["interval"] else "–"
        marked = "–" if figure["marked"] is None else f"{figure['marked']} of {figure['rounds']}"
        row = [key, f"{figure['value']:.4g}", interval, figure["target"], figure["verdict"], marked]
        if not published or figure["target"] != "–":
            table.add(*row[: len(table.columns)])
    return table


def missed(outputs):
    """A line about each figure that misses its target: where its time went, what was tried, what bounds it."""
    notes = {key: note for output in outputs for key, note in output["notes"].items()}
    keys = [key for key, figure in figures_of(outputs).items() if figure["verdict"] == "missed"]
    return [f"* `{key}` misses its target{_why(key, notes)}." for key in keys]


def _why(key, notes):
    note = f": {notes[key]}" if key in notes else ""
    section = targets.NOTEBOOK.get(key)
    return note + (f". Attempts, and the bound: docs/design/benchmarks.md#{section}" if section else "")


def machine_text(outputs):
    machine = outputs[0]["machine"]
    return (
        f"{machine['processor']}, {machine['cores']} cores, last-level cache {machine['last_level_cache']}, "
        f"{machine['memory_bytes'] / (1 << 30):.0f} GiB, Linux {machine['kernel']}."
    )


def machine_lines(outputs):
    """What the machine is, and a table of how it was before and during each benchmark."""
    table = Table(
        "The machine",
        [
            "benchmark",
            *(f"{what} GB/s, {n}" for what in ("read", "copy") for n in ("1 core", "2 cores")),
            "stolen s",
            "load before",
            "took s",
        ],
    )
    for output in outputs:
        gb_s, about = output["machine"]["gb_s"], output["machine"]
        speeds = [f"{gb_s[what][n]:.1f}" if n in gb_s[what] else "–" for what in ("read", "copy") for n in ("1", "2")]
        times = [f"{about[key]:.1f}" for key in ("stolen_seconds", "load_before")]
        table.add(output["benchmark"], *speeds, *times, f"{about['seconds']:.0f}")
    return [
        f"{machine_text(outputs)} Plain C programs read and copied memory right before each benchmark. "
        "All benchmarks together took "
        f"{sum(output['machine']['seconds'] for output in outputs) / 60:.0f} minutes:",
        "",
        table.markdown(),
        "",
        QUIET,
    ]


def write(file, outputs):
    """Writes the report of `outputs`, the JSON of each benchmark, with pictures and README's chart beside it."""
    file.write_text("\n".join(lines(outputs, file.parent)) + "\n", encoding="utf-8")
    chart.draw(outputs, file.parent)


def lines(outputs, folder):
    """The lines of the report. Its pictures are drawn into the folder."""
    made = ["# Figures of the benchmarks", "", summary_table(figures_of(outputs)).markdown(), ""]
    made += missed(outputs)
    made += ["", COMPUTED, ""]
    made += ["## The machine", "", *machine_lines(outputs), ""]
    for output in outputs:
        made += [f"## {output['benchmark']}", ""]
        for number, table in enumerate(output["tables"]):
            made += [f"### {table['title']}", "", as_table(table).markdown(), ""]
            picture = draw(table, folder, f"{output['benchmark']}-{number}")
            made += [picture, ""] if picture else []
    return made + [f"WRONG: {line}" for output in outputs for line in output["wrong"]]


COMPUTED = "bench/README.md says how each figure is computed, and against which baseline."


def published(outputs):
    """The page that is committed: figures with a target, and the tables that readers compare."""
    made = ["# Figures of the benchmarks", "", summary_table(figures_of(outputs), published=True).markdown(), ""]
    made += [COMPUTED, "docs/design/benchmarks.md says what bounds the figures that miss their target.", ""]
    made += ["## The machine", "", machine_text(outputs), QUIET, ""]
    for output in outputs:
        tables = [output["tables"][at] for at in PUBLISHED.get(output["benchmark"], []) if at < len(output["tables"])]
        made += [f"## {output['benchmark']}", ""] if tables else []
        for table in tables:
            made += [f"### {table['title']}", "", as_table(table).markdown(), ""]
    return "\n".join(made[:-1]) + "\n"


# Of the text of a published page: its figures with their heads, and what the machine is.
_FIGURES = re.compile(r"(\| figure .*\n\| --- .*\n)((?:\| .*\n)*)")
_MACHINE = re.compile(r"^## The machine\n\n(.*), Linux ", re.MULTILINE)


def renewed(page, output):
    """The text of a report with one benchmark, measured again on that machine, in place of what it has of it."""
    name, fresh = output["benchmark"], published([output])
    before, now = (_MACHINE.search(text)[1] for text in (page, fresh))
    if before != now:
        raise BenchError(f"{name} was measured on another machine ({now}) than the page's ({before})")
    keys = figures_of([output]).keys()
    head, new = _FIGURES.search(fresh).groups()
    old = _FIGURES.search(page)[2]
    kept = [line for line in old.splitlines(True) if line.split()[1] not in keys]
    page = _FIGURES.sub(lambda _: head + "".join(sorted(kept + new.splitlines(True))), page, count=1)
    own = re.compile(rf"(?s)^## {name}\n.*?(?=\n^## |\Z)", re.MULTILINE)
    return own.sub(lambda _: own.search(fresh)[0], page, count=1)


def as_table(written):
    table = Table(written["title"], written["columns"])
    for row in written["rows"]:
        table.add(*row)
    return table
