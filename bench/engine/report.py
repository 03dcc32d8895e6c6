"""The page of a run: twelve figures, each with its bound, then all tables."""

from engine import quiet
from engine.figures import Table

LIMITATIONS = """\
* One machine, with as few cores as it says below. Nothing here says what a network or a GPU does.
* Data is synthetic, lies in memory and has at most 1.1 GB; ranks only sum tensors. In two tables of `one_call` ranks
  train, and its last one has 20 GB.
* Ours runs with the options of its documents, the others with what theirs advise, by people who know ours better.
* A ratio compares two times of the same round. GB/s and seconds depend on the machine and on the day.
* An interval is the spread within this run. Another run may differ by more."""
COMPUTED = f"""\
A ratio above 1 is in our favour. A round in which others have more than {quiet.LIMIT:.0%} of the processors is measured
again, and a figure that has such rounds all the same is not shown. bench/README.md says how each figure is computed."""

# Key, workload, bound or baseline of the same rounds, what it means.
TWELVE = [
    (
        "cycle_vs_ring_784",
        "elements of 784 B from Spark's cache until the rank has read every byte",
        "a ring between two C processes, which copies 256 KiB at once",
        "1: Java, Spark and small elements cost nothing",
    ),
    ("cycle_vs_ring_192k", "elements of 192 KiB", "the same ring", "1: a block costs one copy in C, no more"),
    (
        "lmdb_ratio_28",
        "a warm LMDB, 784 B, read in place",
        "one C process on liblmdb",
        "1: the way through Spark is free",
    ),
    (
        "frames_doubles_vs_noop",
        "eight doubles of Parquet to a rank, without the start of the job",
        "Spark's own write to nothing, without its start",
        "below 1: what our copy adds to Spark's computing",
    ),
    (
        "frames_lists_vs_noop",
        "lists of 1 to 15 numbers of Parquet, in the same way",
        "the same",
        "the same, for values of any length",
    ),
    (
        "df_vs_bound",
        "a DataFrame in memory to batches of PyTorch",
        "the same batches, which lie in the rank",
        "1: Spark is never waited for",
    ),
    (
        "call_first_batch_s",
        "seconds from Supplier.run to the first batch: starts of processes, imports, Spark's job",
        "–",
        "the price of a call",
    ),
    (
        "call_second_first_batch_s",
        "the same for a second call whose ranks are warm",
        "–",
        "the price of a call in a notebook",
    ),
    (
        "call_vs_parquet_files",
        "one call and one epoch of rows that Spark computes",
        "Spark writes Parquet, then TorchDistributor.run reads the files",
        "how much sooner the epoch is over",
    ),
    (
        "results_vs_map_in_arrow",
        "predictions of numpy back in Spark, without starts",
        "mapInArrow with Spark's fastest settings",
        "how many more rows a second",
    ),
    (
        "feeders_ratio_1m",
        "a rank without Spark, by TCP, blocks of 1 MiB",
        "a C process that sends the same bytes to another",
        "1: the network is the bound",
    ),
    (
        "exchange_all_192k",
        "all rows of 192 KiB exchanged between ranks while they read",
        "the same ranks without an exchange",
        "1: a global shuffle costs nothing",
    ),
]


def figures_of(outputs):
    """The figures of all benchmarks by name, as summary.json has them."""
    return dict(sorted((key, figure) for output in outputs for key, figure in output["figures"].items()))


def summary_table(figures):
    """Of all figures, for the terminal."""
    table = Table("Summary", ["figure", "median", "95 % interval", "disturbed rounds"])
    for key, figure in figures.items():
        disturbed = f"{figure['disturbed']} of {figure['rounds']}" if figure["rounds"] else "–"
        table.add(key, f"{figure['value']:.4g}", _interval(figure), disturbed)
    return table


def _interval(figure):
    return "–".join(f"{end:.3g}" for end in figure["interval"]) if figure["interval"] else "–"


def twelve_table(figures):
    table = Table(
        "Figures", ["figure", "median", "95 % interval", "rounds", "what is measured", "beside", "what it means"]
    )
    for key, *about in TWELVE:
        figure = figures.get(key)
        if figure is None or figure["disturbed"]:
            numbers = ["not measured" if figure is None else "not quiet", "–", "–"]
        else:
            numbers = [f"{figure['value']:.3g}", _interval(figure), figure["rounds"] or "–"]
        table.add(key, *numbers, *about)
    return table


def text(outputs, others=()):
    """The page of `outputs`, the JSON of each benchmark, and of `others`, with another Spark."""
    machine = outputs[0]["machine"]
    hardware = (
        f"{machine['processor']}, {machine['cores']} cores, last-level cache {machine['last_level_cache']}, "
        f"{machine['memory_bytes'] / (1 << 30):.0f} GiB, Linux {machine['kernel']}."
    )
    made = "; ".join(f"{what} {version}" for what, version in machine["provenance"].items())
    lines = ["# Figures of the benchmarks", "", "## Limitations", "", LIMITATIONS, "", "## Twelve figures", ""]
    lines += [twelve_table(figures_of(outputs)).markdown(), "", COMPUTED, "", "## The machine", ""]
    lines += [hardware, f"Measured with: {made}.", ""]
    titled = [(output["benchmark"], output) for output in outputs]
    titled += [
        (f"{output['benchmark']} (Spark {output['machine']['provenance']['Spark']})", output) for output in others
    ]
    for title, output in titled:
        lines += [f"## {title}", ""]
        for table in output["tables"]:
            lines += [f"### {table['title']}", "", Table(**table).markdown(), ""]
        lines += [f"WRONG: {line}\n" for line in output["wrong"]]
    return "\n".join(lines[:-1]) + "\n"
