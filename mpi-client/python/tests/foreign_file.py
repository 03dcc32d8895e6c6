"""A file that is not the pair's, with values to which blocks refer."""

import os
import struct

from layout import CONSTANTS, SIZES, put

# Of bytes between the values.
_FILLER = b"\xee"


class ForeignFile:
    """Writes the values one after the other, each after a gap. Longer ones than a view holds stay there.

    gaps: bytes in front of each value.
    windows: where the windows begin. Each reaches to the end of the file.
    """

    def __init__(self, path, values, gaps, windows=(0,)):
        self._starts = windows
        self._places = {}
        with open(path, "wb") as file:
            for value, gap in zip(values, gaps):
                file.write(gap * _FILLER)
                self._places[value] = file.tell()
                file.write(value)
        found = os.stat(path)
        self._bytes = found.st_size
        self.entry = {
            "path": str(path), "device": found.st_dev, "inode": found.st_ino, "file_bytes": found.st_size,
            "modified": found.st_mtime_ns,
        }  # fmt: skip

    def windows(self):
        """The table of windows of a column."""
        table = bytearray(len(self._starts) * SIZES["window"])
        for index, start in enumerate(self._starts):
            put(table, "window", index * SIZES["window"], file=1, offset=start, window_bytes=self._bytes - start)
        return bytes(table)

    def views(self, values):
        """The views of a column with these values."""
        return b"".join(map(self._view, values))

    def _view(self, value):
        if len(value) <= CONSTANTS["VIEW_INLINE_MAX"]:
            return struct.pack("<i12s", len(value), value)
        place = self._places[value]
        window = max(index for index, start in enumerate(self._starts) if start <= place)
        return struct.pack("<i4sii", len(value), value[:4], window, place - self._starts[window])
