"""The two sides of a pair that test_device_copies kills: `device_program.py rank FOLDER`, `… task PATHS`."""

import itertools
import sys

from task import Task
from test_device_copies import ELEMENTS, is_block, rows_of_block

# The test kills a side after these.
BATCHES = 20
LIMIT_SECONDS = 10


def main():
    if sys.argv[1] == "task":
        task = Task(*sys.argv[2:])
        for number in itertools.count():
            task.supply(rows_of_block(number))
    from spark_supplier.torch import Dataset

    data = Dataset(sys.argv[2], 0, columns=["x"], batch_size=ELEMENTS, timeout=LIMIT_SECONDS).to("cuda")
    for number, batch in enumerate(data):
        if not is_block(batch["x"], number):
            sys.exit(f"batch {number} is wrong")
        if number + 1 == BATCHES:
            print(f"{BATCHES} batches are right", flush=True)


if __name__ == "__main__":
    main()
