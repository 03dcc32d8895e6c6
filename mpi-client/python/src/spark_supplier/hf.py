"""The Hugging Face Trainer, on the rows that Spark supplies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import distributed
from torch.utils.data import DataLoader, IterableDataset

from spark_supplier.errors import ConfigError
from spark_supplier.torch import Dataset

__all__ = ["TrainerMixin"]


class TrainerMixin:
    """Comes first in a class of transformers.Trainer: each rank trains on all batches of its own Dataset.

    Without it the Trainer divides the batches of each rank, or those of rank 0, among all ranks once more, and the
    other rows are lost. max_steps is needed, unless len(data) is known. If the data ends first, the training does, too.

    In a call of a Supplier with checkpoints=, each checkpoint of the Trainer is one of the call, too: data.saved is its
    folder, or None at first, so that trainer.train(resume_from_checkpoint=data.saved) resumes after its last step.
    Other programs find data.pt in that folder, a list of the state_dict() of each rank. Spark then supplies the rows
    after them, so the Trainer skips none.

    Data sets of other classes go their usual way, also for the evaluation. A Dataset can be evaluated on one rank only:
    several ranks may have different numbers of batches of it, for which the Trainer would wait forever.

    Examples
    --------
    ::

        class Trainer(spark_supplier.hf.TrainerMixin, transformers.Trainer):
            pass

        def train(data):
            arguments = transformers.TrainingArguments("model", max_steps=60, save_steps=20)
            Trainer(model(), arguments, train_dataset=data).train(resume_from_checkpoint=data.saved)
    """

    train_dataset: Any
    eval_dataset: Any
    args: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(self.train_dataset, Dataset):
            self.add_callback(_state_saver(self.train_dataset))  # type: ignore[attr-defined]
            self.args.ignore_data_skip = True

    def get_train_dataloader(self) -> Any:
        """All batches of this rank, which are not divided further."""
        data = self.train_dataset
        if not isinstance(data, Dataset):
            return super().get_train_dataloader()  # type: ignore[misc]
        # The Trainer asks for len() before it reads. All ranks are here.
        data.begin()
        return DataLoader(_Epochs(data), batch_size=None)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """The same for an evaluation, on one rank only.

        Parameters
        ----------
        eval_dataset : Dataset, str or other data set, optional
            As of the Trainer.

        Raises
        ------
        ConfigError
            It is a Dataset, and there are several ranks.
        """
        data = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(data, str):
            data = self.eval_dataset[data]
        if not isinstance(data, Dataset):
            return super().get_eval_dataloader(eval_dataset)  # type: ignore[misc]
        if self.args.world_size > 1:
            raise ConfigError(
                "eval_dataset: ranks may have different numbers of batches of a Dataset, and the Trainer would "
                "wait for equal ones: loop over data.validation in your function, or give a data set that each rank has"
            )
        return DataLoader(_Epochs(data), batch_size=None)

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """As get_eval_dataloader()."""
        if isinstance(test_dataset, Dataset):
            return self.get_eval_dataloader(test_dataset)
        return super().get_test_dataloader(test_dataset)  # type: ignore[misc]


class _Epochs(IterableDataset):
    """Each iteration is the next epoch. After the last one they are empty, which ends a training."""

    def __init__(self, data: Dataset) -> None:
        super().__init__()
        self._data = data
        self._epochs = data.epochs()

    def __iter__(self) -> Iterator[Any]:
        return iter(next(self._epochs, ()))

    def __len__(self) -> int:
        return len(self._data)


def _state_saver(data: Dataset) -> Any:
    from transformers import TrainerCallback

    class StateSaver(TrainerCallback):
        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            """The Trainer calls it on all ranks."""
            folder = os.path.abspath(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))
            if hasattr(data, "save"):
                # In a call. Without checkpoints= nothing can resume it.
                if data._checkpoints.can_save:
                    data.save(folder)
                return
            states = [data.state_dict()]
            if args.world_size > 1:
                states *= args.world_size
                distributed.all_gather_object(states, data.state_dict())
            if args.process_index == 0:
                torch.save(states, os.path.join(folder, "data.pt"))

    return StateSaver()
