"""What ends a benchmark with a line for the user."""


class BenchError(Exception):
    """Something that the benchmark needs did not work."""
