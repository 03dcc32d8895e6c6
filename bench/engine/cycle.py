"""One configuration of pairs, from the start of its ranks to its figures."""

import contextlib

from engine import pairs, rounds, verification


def run(
    spark,
    source,
    count,
    ring,
    block,
    options,
    consume="sum",
    limits=None,
    limits_from=0,
    resident=False,
    beside=None,
    shuffle_buffer=None,
):
    """
    `source`: the tally of the source that Spark has open. `limits`: the words of each pair's limit (Limit.scala), the bulk put
    alone where they are not given; `limits_from`: the first round in which they read the source, too, None where they read
    something else. `beside`: makes, of the process ids of the ranks, a context for the time of the run.
    `shuffle_buffer`: the Supplier's, with --shuffle elements; None: the elements come in the order of the source.
    """
    epochs = 1 + options.warm_up + options.repetitions
    limits = limits or [["put"]] * count
    with (
        pairs.config_files(count, ring, block) as configs,
        pairs.ranks(
            count, configs, "bench-rank", "--local-rank", "{}", "--consume", consume, timeout=options.timeout
        ) as ranks,
    ):
        with beside([rank.process.pid for rank in ranks]) if beside else contextlib.nullcontext():
            answer = spark.run(
                "cycle",
                pairs=count,
                epochs=epochs,
                limits=limits,
                timeout=options.timeout,
                resident=resident,
                shuffle_buffer=shuffle_buffer,
                **configs,
            )
        results = [rank.end() for rank in ranks]
    wrong = verification.check(source, results)
    if limits_from is not None:
        wrong += verification.check_limits(source, answer["pairs"], limits_from)
    return {
        "pairs": count,
        "ring_bytes": ring,
        "block_bytes": block,
        **rounds.figures(answer["pairs"], options.warm_up, source["bytes"]),
        "wrong": wrong,
        "ranks": results,
        "rounds": answer["pairs"],
    }
