"""A picture of a table: bars, or a line."""

import re

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def _number(cell):
    """The median at the start of a cell."""
    match = re.match(r"-?[0-9.]+", cell)
    return float(match[0]) if match else 0.0


def _name(table, row, picture):
    name = row[picture["x"]]
    return f"{name}\n{table['columns'][picture['group']]}: {row[picture['group']]}" if "group" in picture else name


def draw(table, file):
    """`table`: as in a benchmark's JSON. False where the table has no picture."""
    picture = table["picture"]
    if not picture:
        return False
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
    return True
