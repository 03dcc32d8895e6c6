"""What a command keeps of the output of its processes."""

import os

from spark_supplier.launch.processes import Output


def test_a_progress_bar_does_not_fill_the_memory():
    reader, writer = os.pipe()
    output = Output(os.fdopen(reader, "rb"), pass_on=False)
    for percent in range(3000):
        os.write(writer, b"\r%d of 3000" % percent)
        output.read()
    os.close(writer)
    output.close()
    lines = output.lines()
    assert len(lines) <= 1000 and lines[-1] == "2999 of 3000"
