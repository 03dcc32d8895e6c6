"""The elements and steps of a whole epoch."""

import pytest
import spark_supplier

from layout import put


def store(task, elements, steps):
    put(task.memory, "mapped_file_header", epoch_elements=elements, epoch_steps=steps)
    put(task.memory, "mapped_file_header", counts_known=1)


def test_they_are_not_known_before_the_task_stores_them(pair):
    rank, task = pair
    assert rank.epoch_elements is None and rank.epoch_steps is None
    store(task, 1 << 40, 7)
    assert rank.epoch_elements == 1 << 40 and rank.epoch_steps == 7


@pytest.mark.parametrize("elements", [60, 0])
def test_steps_may_be_unknown_alone(pair, elements):
    rank, task = pair
    store(task, elements, 0)
    assert rank.epoch_elements == elements and rank.epoch_steps is None


def test_numbers_that_contradict_each_other_are_refused(pair):
    rank, task = pair
    store(task, 6, 7)
    with pytest.raises(spark_supplier.ContractError, match="epoch_steps is 7"):
        _ = rank.epoch_elements
