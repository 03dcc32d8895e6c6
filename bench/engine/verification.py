"""Whether the ranks have received what the source holds, and whether the limits beside them have read it."""


def check(source, rank_results):
    """One line for each thing that is wrong."""
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


def check_limits(source, pairs, first_round):
    """The same of the limits, whose rounds before the first one have nothing to read."""
    wrong = []
    for number, round_ in list(enumerate(zip(*pairs)))[first_round:]:
        moved = sum(pair["limit"]["bytes"] for pair in round_)
        if moved != source["bytes"]:
            wrong.append(f"round {number}: the limit moved {moved} bytes, the source has {source['bytes']}")
    return wrong


def check_walks(source, pairs):
    """Of limits on liblmdb, which take the CRCs in round 0 (c/lmdb_walk.c)."""
    crc_sum = sum(rounds[0]["limit"]["sum"] for rounds in pairs) % (1 << 64)
    return (
        []
        if crc_sum == source["crc_sum"]
        else [f"the walks came to crc_sum {crc_sum}, the source has {source['crc_sum']}"]
    )


def check_in_place(rank_results, pairs):
    """Of limits that read the blocks of their rank, from round 1 on: they are to come to the sum of what it has verified."""
    return [
        f"pair {i}, round {number}: what the limit read in place differs from what the rank received"
        for i, (rank, rounds) in enumerate(zip(rank_results, pairs))
        for number, round_ in list(enumerate(rounds))[1:]
        if round_["limit"]["sum"] != rank["data_sum"]
    ]
