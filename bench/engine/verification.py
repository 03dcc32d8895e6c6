"""Whether the ranks have received what the source holds."""


def check(source, rank_results):
    """One line for each thing that is wrong."""
    received = {
        key: sum(result["received"][key] for result in rank_results) for key in ("elements", "bytes", "crc_sum")
    }
    received["crc_sum"] %= 1 << 64
    wrong = [f"the ranks received {key} {received[key]}, the source has {source[key]}"
             for key in received if received[key] != source[key]]
    wrong += [f"rank {i}: {result['differing_epochs']} epochs differ from the verified one"
              for i, result in enumerate(rank_results) if result["differing_epochs"]]
    return wrong
