"""The cycle of two pairs with --shuffle all, and without, and the same in plain C, round by round in turn."""

import json
import subprocess

from engine import data, exchange, machine, mpi_ranks, quiet
from engine.figures import Table, size_text, spread, spread_text
from engine.spark import Spark

# By the end of the figure's name.
SIZES = {"192k": 192 << 10, "784": 784}
# Of a run: the first one is verified, the second one is not counted.
NOT_TIMED, TIMED = 2, 6
# What a program gets that sets nothing.
WINDOW, RING, BLOCK = 4 << 20, 8 << 20, 2 << 20
WAYS = "plain", "exchanged"


def measure(options, rounds, warm_up, results):
    columns = ["element", "plain GB/s", "exchanged GB/s", "cost: 1 − exchanged / plain"]
    columns += ["C, plain GB/s", "C, exchanged GB/s", "cost in C"]
    table = Table(
        f"--shuffle all: {exchange.RANKS} pairs, every byte read, median (min–max)", columns, {"x": 0, "bars": [3, 6]}
    )
    with Spark(tasks=exchange.RANKS, heap=options.heap) as spark:
        for name, size in SIZES.items():
            partitions = max(2 * exchange.RANKS, options.bytes // data.PARTITION_BYTES)
            source = data.generate(spark, size, options.bytes, partitions)
            measured = compare(spark, source, name, rounds, warm_up, options.timeout, results)
            keys = "plain", "exchanged", "cost", "c_plain", "c_exchanged", "c_cost"
            table.add(size_text(size), *(spread_text(measured[key]) for key in keys))
            results.figure(f"exchange_cost_{name}", measured, "cost")
            results.figure(f"c_exchange_cost_{name}", measured, "c_cost")
    results.table(table)


def compare(spark, source, name, rounds, warm_up, timeout, results):
    """GB/s of both ways, and the cost; `c_`: of bench-exchange-bound."""
    sizes = source["bytes"], SIZES[name], BLOCK, RING, WINDOW

    def one_round(number):
        ran = {way: one_run(spark, source, way == "exchanged", timeout) for way in WAYS}
        ran.update(in_c(sizes, timeout))
        for way, one in ran.items():
            results.case({"cost": name, "way": way, "round": number}, one)
        return ran

    counted = quiet.rounds(warm_up, rounds, one_round)
    results.judged({"cost": name, "warm_up": warm_up}, counted)
    measured = {"others": counted.others}
    for plain, exchanged, cost in ("plain", "exchanged", "cost"), ("c_plain", "c_exchanged", "c_cost"):
        for way in plain, exchanged:
            measured[way] = spread([one[way]["gb_s"] for one in counted])
        measured[cost] = spread([1 - one[exchanged]["gb_s"] / one[plain]["gb_s"] for one in counted])
    return measured


def in_c(sizes, timeout):
    """The first round of each way touches memory, and does not count."""
    command = [machine.program("bench-exchange-bound"), *map(str, sizes)]
    asked = "".join(f"{way}\n" for way in WAYS) * (1 + TIMED)
    ran = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, timeout=timeout, check=True)
    rounds = [json.loads(line) for line in ran.stdout.splitlines()][len(WAYS) :]
    return {
        f"c_{way}": {"gb_s": sum(one["bytes"] for one in of) / sum(one["nanos"] for one in of)}
        for way, of in zip(WAYS, (rounds[::2], rounds[1::2]))
    }


def one_run(spark, source, is_exchanged, timeout):
    """GB/s of all ranks together, from the end of the last epoch that is not timed on all ranks."""
    arguments = ["--exchange", "all", "--window", WINDOW] if is_exchanged else ["--exchange", "none"]
    with mpi_ranks.on_this_machine(exchange.RANKS, RING, BLOCK, "bench-exchange", *arguments, timeout=timeout) as (
        configs,
        ranks,
    ):
        epochs = NOT_TIMED + TIMED
        spark.run("supply", ranks=exchange.RANKS, epochs=epochs, timeout=timeout, exchange=is_exchanged, **configs)
        received = ranks.end()
    start, end = (max(rank["ends"][epoch] for rank in received) for epoch in (NOT_TIMED - 1, epochs - 1))
    return {"gb_s": TIMED * source["bytes"] / (end - start), "ranks": received, "wrong": wrong(source, received)}


def wrong(source, ranks):
    """Compares epoch 0 with the source, element by element, and the bytes of each other epoch with epoch 0."""
    received = {key: sum(rank[key] for rank in ranks) for key in ("elements", "bytes", "crc_sum")}
    received["crc_sum"] %= exchange.WORD
    lines = [
        f"the ranks received {key} {received[key]}, the source has {source[key]}"
        for key in received
        if received[key] != source[key]
    ]
    first, *others = (sum(sums) % exchange.WORD for sums in zip(*(rank["sums"] for rank in ranks)))
    return lines + [f"epoch {i} differs from epoch 0" for i, one in enumerate(others, 1) if one != first]
