"""The losses of TorchEstimator: which labels they take, and one number for a batch, or for each row."""

from functools import partial

import pytest
import torch
from spark_supplier import RunError
from spark_supplier.ml.features import Labels, by_row, labels_of, loss_of
from spark_supplier.ml.training import Training

nn = torch.nn


def linear(features=1):
    return nn.Linear(features, 1)


def test_labels_of_each_loss_of_torch():
    """Integers and numbers, as the losses need them."""
    number = torch.tensor([0.0, 1.0, 1.0, 0.0])
    one, three = torch.rand(4, 1), torch.rand(4, 3)
    for loss in (
        nn.L1Loss(),
        nn.MSELoss(),
        nn.HuberLoss(),
        nn.SmoothL1Loss(),
        nn.BCEWithLogitsLoss(),
        nn.BCELoss(),
        nn.PoissonNLLLoss(),
        nn.SoftMarginLoss(),
        nn.functional.mse_loss,
        partial(nn.functional.l1_loss),
    ):
        assert labels_of(loss) == Labels.NUMBERS
        for output in (one, one[:, 0]):
            found = loss_of(loss, output, number, Labels.NUMBERS, "y")
            assert found == loss(output, number.reshape(output.shape))
        with pytest.raises(RunError, match=r"labelCol 'y' has one number a row, and .* has shape \(4, 3\)"):
            loss_of(loss, three, number, Labels.NUMBERS, "y")
    for loss in (nn.CrossEntropyLoss(), nn.NLLLoss(), nn.MultiMarginLoss(), nn.functional.cross_entropy):
        assert labels_of(loss) == Labels.CLASSES
        assert loss_of(loss, three, number.long(), Labels.CLASSES, "y") == loss(three, number.long())


def test_a_loss_is_one_number_and_its_history_the_mean():
    output, label = torch.rand(4, 1), torch.rand(4)
    expected = nn.functional.mse_loss(output[:, 0], label)
    for reduction in ("mean", "sum"):
        for loss in (nn.MSELoss(reduction=reduction), partial(nn.functional.mse_loss, reduction=reduction)):
            training = Training(linear, loss, None, 0, "x", "y", labels_of(loss))
            value, (total, rows) = training.step(output, {"y": label})
            assert total / rows == pytest.approx(expected) and value == loss_of(
                loss, output, label, training.labels, "y"
            )
    for loss, labels in (
        (nn.MSELoss(reduction="none"), Labels.NUMBERS),
        (nn.CrossEntropyLoss(reduction="none"), Labels.CLASSES),
        (lambda output, label: output[:, 0] - label, Labels.ANY),
    ):
        of = label.long() if labels == Labels.CLASSES else label
        with pytest.raises(RunError, match=r"the loss has shape \(4.*, must be one number: its mean"):
            loss_of(loss, output if labels != Labels.CLASSES else torch.rand(4, 3), of, labels, "y")


def test_labels_of_a_loss_that_would_broadcast():
    def loss(output, label):
        return (output - label).abs().mean()

    assert labels_of(loss) == labels_of(nn.Linear(1, 1)) == Labels.ANY
    label, one = torch.arange(4), torch.rand(4, 1)
    assert loss_of(loss, one, label, Labels.ANY, "y") == (one[:, 0] - label).abs().mean()
    for rows, outputs in ((4, 4), (1, 2), (1, 3), (2, 2)):
        with pytest.raises(RunError, match="labelCol 'y' has one number a row, .* which the loss broadcasts"):
            loss_of(loss, torch.rand(rows, outputs), label[:rows], Labels.ANY, "y")
    # This one knows what it does.
    three = torch.rand(3, 3)
    assert loss_of(lambda output, label: loss(output[:, 0], label), three, label[:3], Labels.ANY, "y") > 0


def test_losses_of_rows():
    weight = torch.tensor([0.0, 1.0, 2.0, 3.0])
    one, three, number = torch.rand(4, 1), torch.rand(4, 3), torch.tensor([0.0, 1.0, 1.0, 0.0])
    for loss in (nn.MSELoss(), nn.BCEWithLogitsLoss(reduction="sum"), partial(nn.functional.l1_loss, reduction="sum")):
        kept = getattr(loss, "reduction", None)
        found = loss_of(by_row(loss), one, number, Labels.NUMBERS, "y", weight)
        alone = [loss(one[i, 0], number[i]) * weight[i] for i in range(4)]
        assert found.tolist() == pytest.approx([value.item() for value in alone])
        assert getattr(loss, "reduction", None) == kept
    for loss in (nn.CrossEntropyLoss(), nn.functional.cross_entropy):
        found = loss_of(by_row(loss), three, number.long(), labels_of(loss), "y", weight)
        expected = [loss(three[i : i + 1], number[i : i + 1].long()) * weight[i] for i in range(4)]
        assert found.tolist() == pytest.approx([value.item() for value in expected])
    own = [lambda output, label: (output - label) ** 2, lambda output, label: ((output - label) ** 2)[:, 0]]
    for loss in own:
        assert loss_of(by_row(loss), one, number, Labels.ANY, "y", weight).shape == (4,)
    for bad in (lambda output, label: (output - label).mean(), lambda output, label: (output - label)[:2]):
        with pytest.raises(
            RunError, match=r"the loss has shape \(.*\): with weightCol it must have one number for each"
        ):
            loss_of(by_row(bad), one, number, Labels.ANY, "y", weight)
