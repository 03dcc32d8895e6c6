"""README's chart: samples per second from a DataFrame to batches of PyTorch, by way."""

import html

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
WIDTH, LEFT, LONGEST = 720, 190, 440
TOP, ROW, BAR = 36, 34, 24


def draw(outputs, folder):
    """Draws the chart into the folder for light and dark pages, if `dataframes` was measured."""
    for output in outputs:
        if output["benchmark"] == "dataframes" and output["tables"]:
            table = output["tables"][0]
            column = table["columns"].index("samples/s")
            # A way that fails has no number.
            rows = [row for row in table["rows"] if row[0] in WAYS and row[column] != "–"]
            speeds = {row[0]: float(row[column].split()[0]) for row in rows}
            for page, colours in COLOURS.items():
                (folder / f"{NAME}-{page}.svg").write_text(picture(speeds, *colours), encoding="utf-8")


def figure_text(speed):
    return f"{float(f'{speed:.3g}'):,.0f}"


def picture(speeds, text, ours, others):
    """speeds: by way."""
    height = TOP + ROW * len(speeds)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="13" fill="{text}">',
        f'<text x="8" y="20">{html.escape(TITLE, quote=False)}</text>',
    ]
    for number, (way, name) in enumerate((way, name) for way, name in WAYS.items() if way in speeds):
        top, length = TOP + ROW * number, round(LONGEST * speeds[way] / max(speeds.values()), 1)
        middle = top + BAR // 2 + 5
        lines += [
            f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{html.escape(name, quote=False)}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{length}" height="{BAR}" fill="{others if number else ours}"/>',
            f'<text x="{LEFT + length + 6:.1f}" y="{middle}">{figure_text(speeds[way])}</text>',
        ]
    return "\n".join([*lines, "</svg>\n"])
