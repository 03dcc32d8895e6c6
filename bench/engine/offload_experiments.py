"""The experiments of Alchemist's paper at the size of one machine: products, conjugate gradients, truncated SVD."""

from engine import offload
from engine.figures import Table, spread_text

# Rows, columns, and columns of the right side.
PRODUCTS = [(20_000, 500, 500), (50_000, 500, 100), (10_000, 1_000, 2_000), (4_000, 4_000, 4_000)]
CONJUGATE_GRADIENTS = [(20_000, 100, features) for features in (500, 1000, 2000)]
SVD_ROWS = [20_000, 50_000, 100_000, 200_000]
SVD_COLUMNS = 500


def products(rows):
    """rows: divides those of the experiment, for a quick check."""
    return [offload.multiply(shape[0] // rows, *shape[1:]) for shape in PRODUCTS]


def conjugate_gradients(rows):
    return [offload.conjugate_gradient(shape[0] // rows, *shape[1:]) for shape in CONJUGATE_GRADIENTS]


def truncated_svds(rows):
    return [offload.truncated_svd(each // rows, SVD_COLUMNS) for each in SVD_ROWS]


def add_table(results, title, measured, name):
    """measured: pairs of a case and its figures. name: of a case, in the picture."""
    ways = measured[0][0].ways
    columns = ["size", "ranks s", *(f"{way} s" for way in ways), *(f"{way} / ranks" for way in ways)]
    table = Table(title, columns, picture={"x": 0, "bars": list(range(1, 2 + len(ways)))})
    for case, figures in measured:
        seconds = [spread_text(figures[way]["s"], 3) for way in (offload.OURS, *ways)]
        table.add(name(case), *seconds, *(spread_text(figures[way]["ratio"], 1) for way in ways))
    results.table(table)


def measure(driver, rounds, warm_up, results, divided=1):
    """Measures all three. divided: the rows, for a quick check. Returns the figures of the SVDs by case."""

    def measured(cases):
        return list(offload.measure(driver, cases(divided), rounds, warm_up, results))

    add_table(
        results,
        "Matrix products, rows to rows, the right side sent too",
        measured(products),
        lambda case: f"{case.rows}×{case.columns}×{case.right_columns}",
    )
    add_table(
        results,
        "Conjugate gradients on random features, to 1e-8",
        measured(conjugate_gradients),
        lambda case: f"{case.rows}×{case.random_features}",
    )
    svds = measured(truncated_svds)
    add_table(results, "Truncated SVD, k = 20, of 500 columns", svds, lambda case: f"{case.rows} rows")
    return dict(svds)
