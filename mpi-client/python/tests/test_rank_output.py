"""The lines of a rank that prints bars, long lines and half characters."""

import pytest
from spark_supplier.node.output import Lines


def printed(*pieces):
    lines = Lines()
    return [line for piece in pieces for line in lines.add(piece)] + list(lines.rest())


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"a\n\nb\n"], ["a", "", "b"]),
        ([b"wi", b"th", b"out an end"], ["without an end"]),
        ([b"dos\r\nends\r\n"], ["dos", "ends"]),
        ([b"\xc3", b"\xa9\n\xff\n"], ["\u00e9", "\ufffd"]),
        # tqdm begins each state with a carriage return, and clears a bar that it does not leave.
        ([b"\r%d%%" % percent for percent in range(1000)] + [b"\nend\n"], ["999%", "end"]),
        ([b"\rbar", b"\r   \r", b"text\n"], ["text"]),
        ([b"\rbar", b"\r   \r"], ["bar"]),
        # Others end each state with one.
        ([b"%d%%\r" % percent for percent in range(1000)], ["999%"]),
        ([b"x" * 100000 + b"\n"], ["x" * 100000]),
        ([b"x" * 70000, b"x\n"], ["x" * 65536, "x" * 4465]),
    ],
)
def test_lines(pieces, lines):
    assert printed(*pieces) == lines
