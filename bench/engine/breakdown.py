"""What the time of a cycle goes into, as far as its own rounds tell."""


def text(figures):
    """Of a cycle that was measured beside the put alone."""
    copying = figures["ratio"]["median"]
    waiting = figures["waiting_for_rank"]["median"]
    rest = max(0, 1 - copying - waiting)
    return (
        f"of the cycle's time {copying:.0%} is what the copy alone takes (the put alone), {waiting:.0%} waiting for the rank, "
        f"{rest:.0%} the rest: waking the rank, first looks at elements, Spark's cache (by profile in bench/README.md)"
    )
