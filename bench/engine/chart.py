"""README's chart: samples per second from a DataFrame to batches of PyTorch, by way."""

import matplotlib
from matplotlib import pyplot

matplotlib.use("Agg")

NAME = "samples-per-second"
TITLE = "Samples/s from a DataFrame in Spark's memory to PyTorch batches, one rank"
# The ways of `dataframes` that are shown, and what a reader who does not know the benchmark calls them.
WAYS = {
    "supply": 'df.write.format("supply")',
    "parquet": "Parquet file, pyarrow",
    "mapInArrow": "mapInArrow, socket",
    "toLocalIterator": "toLocalIterator",
}
# Text, the bar of spark-supplier, the other bars. The background is the page's.
COLOURS = {"light": ("#1f2328", "#0969da", "#afb8c1"), "dark": ("#e6edf3", "#4493f8", "#57606a")}


def draw(outputs, folder):
    """Draws the chart into the folder for light and dark pages, if `dataframes` was measured."""
    for output in outputs:
        if output["benchmark"] == "dataframes" and output["tables"]:
            draw_table(output["tables"][0], folder)


def draw_table(table, folder):
    """`table`: the first of `dataframes`, as a benchmark's JSON has it."""
    column = table["columns"].index("samples/s")
    speeds = {row[0]: float(row[column].split()[0]) for row in table["rows"]}
    for page, colours in COLOURS.items():
        # The same figures make the same file; text stays text.
        with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": NAME, "font.family": "sans-serif"}):
            _draw([(name, speeds[way]) for way, name in WAYS.items()], colours, folder / f"{NAME}-{page}.svg")


def figure_text(speed):
    return f"{float(f'{speed:.3g}'):,.0f}"


def _draw(bars, colours, file):
    text, ours, others = colours
    figure, axes = pyplot.subplots(figsize=(7.2, 1.9), layout="constrained")
    names, speeds = zip(*bars)
    drawn = axes.barh(range(len(bars)), speeds, color=[ours] + [others] * (len(bars) - 1), height=0.7)
    axes.bar_label(drawn, [figure_text(speed) for speed in speeds], padding=4, color=text)
    axes.set_yticks(range(len(bars)), names, color=text)
    axes.invert_yaxis()
    axes.set_xlim(right=1.15 * max(speeds))
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    figure.suptitle(TITLE, x=0.01, horizontalalignment="left", color=text, fontsize=10)
    figure.savefig(file, transparent=True, metadata={"Date": None})
    pyplot.close(figure)
