"""One measurement of pairs: a verified epoch, then rounds of the baseline and the cycle."""

from engine import machine, pairs, quiet
from engine.figures import spread
from engine.machine import BenchError

# Of the C ring, in bytes.
SMALLEST_COPY = 256 << 10


def ring_words(size, data_bytes, options):
    """The words of the C ring (c/ring.c) with blocks like those of the pair."""
    # Small elements are copied many at a time, as from one of the Supplier's batches, but no more than a block has.
    size = min(options.block, max(size, SMALLEST_COPY)) // 8 * 8
    return ["program", machine.program("bench-ring"), *map(str, (data_bytes, size, options.block, options.ring))]


def check_nothing(ranks, rounds):
    return []


def run(
    spark,
    source,
    count,
    options,
    ring=None,
    block=None,
    ranks=None,
    baselines=None,
    baselines_from=0,
    check=check_nothing,
    **how,
):
    """
    Measures one configuration of pairs.

    source: the tally of the source that Spark has open. ranks: their commands, if they are not beside Spark. baselines:
    the words of each pair's baseline (Baseline.scala); by default the memcpy baseline. baselines_from: the first round
    whose baseline reads the whole source. check: says what else is wrong, from the ranks' output and the rounds of each
    pair. how: what Spark does differently (Cycle of Command.scala).

    Returns the figures, with `rounds`, those of each pair that were timed.
    """
    ring, block = ring or options.ring, block or options.block
    how |= {"pairs": count, "epochs": 1 + options.warm_up + options.repetitions}
    how["baselines"] = baselines or [["memcpy"]] * count

    def attempt(_):
        rounds, received = once(spark, options, ranks or pairs.beside_spark(count), ring, block, **how)
        wrong.extend(check_received(source, received) + check(received, rounds))
        wrong.extend(check_baselines(source, rounds, baselines_from))
        return list(zip(*rounds))[1 + options.warm_up :]

    wrong = []
    attempts = quiet.rounds(0, 1, attempt)
    return {
        "pairs": count,
        "ring_bytes": ring,
        "block_bytes": block,
        **figures_of(attempts[0], source["bytes"]),
        "disturbed": attempts.disturbed * options.repetitions,
        "wrong": wrong,
        "rounds": attempts[0],
    }


def once(spark, options, ranks, ring=None, block=None, **how):
    """Returns the rounds of each pair, and what the ranks print."""
    with (
        pairs.config_files(len(ranks), ring or options.ring, block or options.block) as configs,
        pairs.started(configs, ranks, options.timeout) as started,
    ):
        rounds = spark.run("cycle", timeout=options.timeout, **how, **configs)["pairs"]
        return rounds, [rank.end() for rank in started]


def _together(measured):
    """Seconds from the first start to the last end over all pairs."""
    start = min(m["start"] for m in measured)
    return (max(m["start"] + m["nanos"] for m in measured) - start) / 1e9


def _gb_s(rounds, kind):
    """What all pairs moved together, round by round."""
    return [
        sum(pair[kind]["bytes"] for pair in round_) / _together([pair[kind] for pair in round_]) / 1e9
        for round_ in rounds
    ]


def figures_of(rounds, data_bytes):
    """
    Figures of rounds. Each has the baseline, the ring if any, and the cycle of each pair.

    A cycle moves `data_bytes` of element data over all pairs. A baseline says itself how much it moved.
    """
    cycle = [data_bytes / _together([pair["cycle"] for pair in round_]) / 1e9 for round_ in rounds]
    baseline = _gb_s(rounds, "baseline")
    if not all(baseline):
        raise BenchError("a baseline has moved nothing: what it reads was not there")
    ring = _gb_s(rounds, "ring") if rounds[0][0]["ring"] else None
    elements = sum(pair["cycle"]["elements"] for pair in rounds[0])

    def per_element(nanos):
        return spread([sum(map(nanos, round_)) / elements for round_ in rounds])

    return {
        "cycle_gb_s": spread(cycle),
        "baseline_gb_s": spread(baseline),
        "ratio": spread([c / b for c, b in zip(cycle, baseline)]),
        "ring_gb_s": ring and spread(ring),
        "vs_ring": ring and spread([c / r for c, r in zip(cycle, ring)]),
        "elements_per_s": spread([gb_s * 1e9 / data_bytes * elements for gb_s in cycle]),
        "allocated_bytes_per_element": per_element(lambda pair: pair["allocated_bytes"]),
        "task_ns_per_element": per_element(lambda pair: pair["cycle"]["cpu_nanos"]),
        "waiting_ns_per_element": per_element(lambda pair: pair["waited_for_rank"]),
    }


def check_received(source, rank_results):
    """Compares what the ranks received with the source. Returns a line for each difference."""
    received = {
        key: sum(result["received"][key] for result in rank_results) for key in ("elements", "bytes", "crc_sum")
    }
    received["crc_sum"] %= 1 << 64
    wrong = [
        f"the ranks received {key} {received[key]}, the source has {source[key]}"
        for key in received
        if received[key] != source[key]
    ]
    wrong += [
        f"rank {i}: {result['differing_epochs']} epochs differ from the verified one"
        for i, result in enumerate(rank_results)
        if result["differing_epochs"]
    ]
    return wrong


def check_baselines(source, pairs, first_round):
    """Checks that each baseline moved the source's bytes, from `first_round` on."""
    wrong = []
    for number, round_ in list(enumerate(zip(*pairs)))[first_round:]:
        moved = sum(pair["baseline"]["bytes"] for pair in round_)
        if moved != source["bytes"]:
            wrong.append(f"round {number}: the baseline moved {moved} bytes, the source has {source['bytes']}")
    return wrong


def check_liblmdb(source, _, pairs):
    """Checks the CRCs that liblmdb baselines compute in round 0 (c/lmdb_walk.c)."""
    crc_sum = sum(rounds[0]["baseline"]["sum"] for rounds in pairs) % (1 << 64)
    return (
        []
        if crc_sum == source["crc_sum"]
        else [f"the walks have crc_sum {crc_sum}, the source has {source['crc_sum']}"]
    )


def check_in_place(rank_results, pairs):
    """Checks baselines that read their rank's blocks: from round 1 on their sum must be the rank's verified one."""
    return [
        f"pair {i}, round {number}: what the baseline read in place differs from what the rank received"
        for i, (rank, rounds) in enumerate(zip(rank_results, pairs))
        for number, round_ in list(enumerate(rounds))[1:]
        if round_["baseline"]["sum"] != rank["data_sum"]
    ]
