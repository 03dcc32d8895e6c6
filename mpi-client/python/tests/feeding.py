"""A task that supplies whole epochs of the numbers from 0, in the column x."""

import pyarrow

from task import Task


def supply_blocks(task, sizes, epoch=0):
    """Blocks of these sizes of one partition: the numbers from 0, or from the rank's position."""
    schema = pyarrow.schema([pyarrow.field("x", "int64", False)])
    first = task.header("start_element") if epoch == task.header("start_epoch") else 0
    for size in sizes:
        batch = pyarrow.record_batch([pyarrow.array(range(first, first + size), "int64")], schema=schema)
        task.supply(batch, epoch=epoch, first_element=first)
        first += size


def supply_epochs(files, sizes, epochs=1, first_epoch=0):
    """A task that supplies blocks of these sizes in each epoch."""
    task = Task(*files.paths)
    try:
        for epoch in range(first_epoch, first_epoch + epochs):
            supply_blocks(task, sizes, epoch)
            task.end_of_epoch(epoch)
        task.end_of_data(epochs - 1)
        task.confirm_end()
    finally:
        task.leave()


def numbers_of(batches):
    return [batch["x"].tolist() for batch in batches]
