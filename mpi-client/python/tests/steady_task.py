"""A task that fills each slot of the ring once, and then publishes it again and again, as fast as the rank returns it.

So a benchmark measures the way from the ring, and not the task's copy into it.
"""

import os
import struct
import time

from layout import SIZES, offset_of
from task import HANG_SECONDS, Task, _aligned

_RELEASED, _PUBLISHED = (offset_of("mapped_file_header", field) for field in ("released", "published"))
_SEQUENCE = offset_of("notification", "sequence")


class SteadyTask(Task):
    def fill(self, make):
        """Supplies make(slot), a record batch, in every slot."""
        for slot in range(self.header("block_count")):
            self.supply(make(slot))

    def publish(self, count, source=None):
        """Publishes `count` more blocks, with what their slots contain: no copy, and one system call for each.

        source: is copied into each block first, as the values of its one column.
        """
        slots, begin = self.header("block_count"), self.header("published")
        places = [self.header("ring_offset") + slot * self.header("block_bytes") for slot in range(slots)]
        values = _aligned(SIZES["block_header"] + SIZES["block_column"])
        # struct stores byte by byte, and the rank reads meanwhile.
        counts = memoryview(self.memory)[: SIZES["mapped_file_header"]].cast("Q")
        notifications = [bytearray(self.memory[at : at + SIZES["notification"]]) for at in places]
        for number in range(begin, begin + count):
            self._await_credit(counts, number, slots)
            at, notification = places[number % slots], notifications[number % slots]
            if source is not None:
                self.memory[at + values : at + values + len(source)] = source
            struct.pack_into("<Q", notification, _SEQUENCE, number)
            self.memory[at : at + len(notification)] = notification
            counts[_PUBLISHED // 8] = number + 1
            os.write(self._notifications, notification)
        counts.release()

    def _await_credit(self, counts, number, slots):
        limit = time.monotonic() + HANG_SECONDS
        while number >= counts[_RELEASED // 8] + slots:
            assert time.monotonic() < limit, "waited in vain for credit"
