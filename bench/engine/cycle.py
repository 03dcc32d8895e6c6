"""One measurement of pairs: a verified epoch, then rounds of the baseline and the cycle."""

from engine import pairs, quiet
from engine.figures import spread
from engine.machine import BenchError


def check_nothing(ranks, rounds):
    return []


def run(
    spark,
    source,
    count,
    ring,
    block,
    options,
    baselines=None,
    rings=(),
    baselines_from=0,
    resident=False,
    shuffle_buffer=None,
    resident_folder=None,
    check=check_nothing,
    repeat=True,
):
    """
    Measures one configuration of pairs.

    source: the tally of the source that Spark has open. baselines: the words of each pair's baseline (Baseline.scala);
    by default the memcpy baseline. rings: the words of another baseline of each pair, if any. baselines_from: the first
    round whose baseline reads the whole source. shuffle_buffer: that of --shuffle rows; None keeps the order of the
    source. resident_folder: that of --resident-folder. check: says what else is wrong, from the ranks' output and the
    rounds of each pair. repeat: measure marked rounds once more.

    Returns the figures, the options of the pairs, and `rounds` with all measured rounds (quiet.Rounds), `not_counted`
    with the verified epoch and the warm-up of each attempt, and `ranks` with the output of the first attempt's ranks.
    """

    def attempt(repetitions):
        epochs = 1 + options.warm_up + repetitions
        with (
            pairs.config_files(count, ring, block) as configs,
            pairs.local_ranks(count, configs, "bench-rank", "{}", timeout=options.timeout) as ranks,
        ):
            rounds = spark.run(
                "cycle",
                pairs=count,
                epochs=epochs,
                baselines=baselines or [["memcpy"]] * count,
                rings=rings,
                timeout=options.timeout,
                resident=resident,
                shuffle_buffer=shuffle_buffer,
                resident_folder=resident_folder,
                **configs,
            )["pairs"]
            results = [rank.end() for rank in ranks]
        wrong.extend(check_received(source, results) + check(results, rounds))
        wrong.extend(check_baselines(source, rounds, baselines_from))
        return results, rounds

    def judged(rounds):
        of_attempt = list(zip(*rounds))
        not_counted.append(of_attempt[: 1 + options.warm_up])
        return [(others.share(*_span(round_)), round_) for round_ in of_attempt[1 + options.warm_up :]]

    wrong, not_counted = [], []
    with quiet.OtherTime() as others:
        ranks, rounds = attempt(options.repetitions)
        measured = judged(rounds)
        marked = quiet.Rounds(measured, options.repetitions).marked
        if marked and repeat:
            measured += judged(attempt(marked)[1])
    counted = quiet.Rounds(measured, options.repetitions)
    return {
        "pairs": count,
        "ring_bytes": ring,
        "block_bytes": block,
        **figures_of(counted, source["bytes"]),
        "wrong": wrong,
        "ranks": ranks,
        "not_counted": not_counted,
        "rounds": counted.measured,
    }


def _span(round_):
    """From the first start of a baseline to the last end of a cycle."""
    end = max(pair["cycle"]["start"] + pair["cycle"]["nanos"] for pair in round_)
    return min(pair["baseline"]["start"] for pair in round_), end


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
    Figures of the rounds that count (quiet.Rounds). Each round has the baseline, the ring if any, and the cycle.

    A cycle moves `data_bytes` of element data over all pairs. A baseline says itself how much it moved.
    """
    cycle = [data_bytes / _together([pair["cycle"] for pair in round_]) / 1e9 for round_ in rounds]
    baseline = _gb_s(rounds, "baseline")
    if not all(baseline):
        raise BenchError("a baseline has moved nothing: what it reads was not there")
    ring = _gb_s(rounds, "ring") if rounds[0][0]["ring"] else None
    elements = sum(pair["cycle"]["elements"] for pair in rounds[0])
    return {
        "cycle_gb_s": spread(cycle),
        "baseline_gb_s": spread(baseline),
        "ratio": spread([c / b for c, b in zip(cycle, baseline)]),
        "ring_gb_s": ring and spread(ring),
        "ring_ratio": ring and spread([r / b for r, b in zip(ring, baseline)]),
        "others": rounds.others,
        "elements_per_s": spread([gb_s * 1e9 / data_bytes * elements for gb_s in cycle]),
        "baseline_elements_per_s": spread(
            [sum(p["baseline"]["elements"] for p in r) / _together([p["baseline"] for p in r]) for r in rounds]
        ),
        "allocated_bytes_per_element": spread([sum(p["allocated_bytes"] for p in r) / elements for r in rounds]),
        "waiting_for_rank": spread(
            [sum(p["waited_for_rank"] for p in r) / sum(p["cycle"]["nanos"] for p in r) for r in rounds]
        ),
        "task_ns_per_element": spread([sum(p["cycle"]["cpu_nanos"] for p in r) / elements for r in rounds]),
        "baseline_ns_per_element": spread(
            [sum(p["baseline"]["cpu_nanos"] for p in r) / sum(p["baseline"]["elements"] for p in r) for r in rounds]
        ),
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


def breakdown(figures):
    """Says where the time of a cycle goes. It must have been measured beside the memcpy baseline."""
    copying = figures["ratio"]["median"]
    waiting = figures["waiting_for_rank"]["median"]
    rest = max(0, 1 - copying - waiting)
    return (
        f"of the cycle's time {copying:.0%} is the memcpy baseline, {waiting:.0%} waiting for the rank, "
        f"{rest:.0%} the rest: waking the rank, first access to elements, Spark's cache"
    )
