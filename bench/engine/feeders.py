"""The cycle of one pair that a feeder opens for its rank, against messages of the same size without Spark."""

from engine import data, machine, mpi_ranks, pairs, quiet
from engine.figures import Table, size_text, spread, spread_text
from engine.spark import Spark

# By the end of the figures' names.
BLOCKS = {"2m": 2 << 20, "64k": 64 << 10}
SLOTS = 4
ELEMENT = 784
# Of a run: the first epoch is verified, the second one is not counted.
NOT_TIMED, TIMED = 2, 6


def measure(options, rounds, warm_up, results):
    columns = ["block", "messages alone GB/s", "fed GB/s", "beside Spark GB/s", "fed / messages", "fed / beside Spark"]
    table = Table("Feeders: one pair, every byte read, median (min–max)", columns, {"x": 0, "bars": [1, 2, 3]})
    with Spark(tasks=1, heap=options.heap) as spark:
        source = data.generate(spark, ELEMENT, options.bytes, max(2, options.bytes // data.PARTITION_BYTES))
        for name, block in BLOCKS.items():
            measured = compare(spark, source, name, block, rounds, warm_up, options.timeout, results)
            keys = ("messages", "fed", "beside", "of_messages", "of_beside")
            table.add(size_text(block), *(spread_text(measured[key]) for key in keys))
            results.figure(f"feeders_{name}", measured, "of_messages")
    results.table(table)


def compare(spark, source, name, block, rounds, warm_up, timeout, results):
    """GB/s of the three ways, and the ratios."""

    def one_round(number):
        one = {
            "messages": messages(block, source["bytes"], timeout),
            "fed": cycle(spark, source, mpi_ranks.fed, (), block, timeout),
            "beside": cycle(spark, source, mpi_ranks.on_this_machine, (1,), block, timeout),
        }
        for way, of_way in one.items():
            results.case({"feeders": name, "way": way, "round": number}, of_way)
        return one

    counted = quiet.rounds(warm_up, rounds, one_round)
    results.judged({"feeders": name, "warm_up": warm_up}, counted)

    def speed(one, way):
        return one[way]["gb_s"]

    return {
        **{way: spread([speed(one, way) for one in counted]) for way in ("messages", "fed", "beside")},
        "of_messages": spread([speed(one, "fed") / speed(one, "messages") for one in counted]),
        "of_beside": spread([speed(one, "fed") / speed(one, "beside") for one in counted]),
        "others": counted.others,
    }


def messages(block, total, timeout):
    """Two processes without Spark."""
    count = TIMED * total // block
    command = [*mpi_ranks.Launcher().command(2), machine.program("bench-messages"), block, SLOTS, count]
    with mpi_ranks.started(pairs.NO_FILES, command, timeout) as processes:
        received = processes.end()
    return {"gb_s": count * block / received["nanos"], "wrong": []}


def cycle(spark, source, opened, counts, block, timeout):
    """GB/s from the end of the last epoch that is not timed."""
    with opened(*counts, SLOTS * block, block, "bench-exchange", "--exchange", "none", timeout=timeout) as (
        configs,
        ranks,
    ):
        epochs = NOT_TIMED + TIMED
        spark.run("supply", ranks=1, epochs=epochs, timeout=timeout, **configs)
        (received,) = ranks.end()
    start, end = (received["ends"][epoch] for epoch in (NOT_TIMED - 1, epochs - 1))
    return {"gb_s": TIMED * source["bytes"] / (end - start), "rank": received, "wrong": wrong(source, received)}


def wrong(source, received):
    """Compares epoch 0 with the source, element by element, and the bytes of each other epoch with epoch 0."""
    lines = [
        f"the rank received {key} {received[key]}, the source has {source[key]}"
        for key in ("elements", "bytes", "crc_sum")
        if received[key] != source[key]
    ]
    first, *others = received["sums"]
    return lines + [f"epoch {i} differs from epoch 0" for i, one in enumerate(others, 1) if one != first]
