"""A task that supplies whole epochs of the numbers from 0, in the column x."""

import pyarrow

from layout import put
from task import Task


def supply_blocks(task, sizes, epoch=0):
    """Blocks of these sizes of one partition: the numbers from 0, or from the rank's position."""
    schema = pyarrow.schema([pyarrow.field("x", "int64", False)])
    first = task.header("start_element") if epoch == task.header("start_epoch") else 0
    for size in sizes:
        batch = pyarrow.record_batch([pyarrow.array(range(first, first + size), "int64")], schema=schema)
        task.supply(batch, epoch=epoch, first_element=first)
        first += size


def announce(task, elements):
    """Stores the elements of a whole epoch, as a task of counted data."""
    put(task.memory, "mapped_file_header", epoch_elements=elements)
    put(task.memory, "mapped_file_header", counts_known=1)


def supply_epochs(files, sizes, epochs=1, is_counted=False):
    """A task that supplies blocks of these sizes in each epoch."""
    task = Task(*files.paths)
    try:
        if is_counted:
            announce(task, sum(sizes))
        for epoch in range(epochs):
            supply_blocks(task, sizes, epoch)
            task.end_of_epoch(epoch)
        task.end_of_data(epochs - 1)
        task.confirm_end()
    finally:
        task.leave()


def numbers_of(batches):
    return [batch["x"].tolist() for batch in batches]
