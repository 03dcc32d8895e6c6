"""Elements of other ranks go to the device from the ring that this rank keeps in its memory.

As in test_device, a stand-in takes the place of the device where there is none.
"""

import pytest
import spark_supplier

from exchanging import check_all_once, feeding, on_ranks
from thread_transport import Mail, ThreadTransport

torch = pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")
from spark_supplier.torch import DataLoader, Dataset  # noqa: E402

from test_device import StandIn  # noqa: E402

COLUMNS = ["id", "user", "text", "point", "flag", "weight"]
EPOCHS = 2
HAS_DEVICE = torch.cuda.is_available()


class Done:
    """An event: the stand-in has copied at once."""

    def query(self):
        return True

    def synchronize(self):
        pass


@pytest.fixture
def device(monkeypatch):
    """A stand-in, if there is no device. Several rings may be registered with it."""
    if HAS_DEVICE:
        return
    stand_in = StandIn()
    stand_in.install(monkeypatch)
    monkeypatch.setattr(stand_in.copying, "record_event", Done)
    monkeypatch.setattr(stand_in, "cudaHostRegister", lambda *_: 0)
    monkeypatch.setattr(stand_in, "cudaHostUnregister", lambda _: None)


def dataset(*pair, **options):
    return Dataset(
        *pair, columns=COLUMNS, batch_size=7, nulls={"weight": "mask"}, timeout=30, **options
    ).to("cuda")  # fmt: skip


def rows_of(batch):
    """The rows as exchanging.row() has them."""
    if HAS_DEVICE:
        assert {values.device.type for values in batch.values() if not isinstance(values, list)} == {"cuda"}
    columns = {name: values if isinstance(values, list) else values.tolist() for name, values in batch.items()}
    masks = columns.pop("weight_mask")
    rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    return [{**row, "weight": row["weight"] if mask else None} for row, mask in zip(rows, masks)]


def epochs_of(data):
    return [[row for batch in epoch for row in rows_of(batch)] for epoch in data.epochs()]


@pytest.mark.parametrize("policy", ["all", "balance"])
def test_elements_of_other_ranks(ranks, device, policy):
    sizes = [[30, 30, 1], [47]]
    mail = Mail(2)

    def run(rank):
        exchange = spark_supplier.ranks.Exchange(policy, window=2048)
        with dataset(ranks[rank].folder, 0, rank=rank, exchange=exchange, comm=ThreadTransport(mail, rank)) as data:
            data._opened()
            task = feeding(ranks[rank], rank, sizes[rank], EPOCHS)
            received = epochs_of(data)
        task.join()
        return received

    check_all_once(sizes, on_ranks(2, run), EPOCHS)


def test_workers_of_a_loader_and_its_pinned_batches(files):
    """The way to a device with workers: the loop moves the batches itself. A child that forks after the device has been
    used leaves it alone."""
    device = "cuda" if HAS_DEVICE else "cpu"
    torch.ones(1, device=device)
    data = Dataset(files.folder, 0, columns=["id", "point"], batch_size=7, timeout=30)
    with data:
        data._opened()
        task = feeding(files, 0, [30, 30, 1])
        loader = DataLoader(data, num_workers=2, pin_memory=HAS_DEVICE)
        ids = []
        for batch in loader:
            ids += batch["id"].to(device, non_blocking=True).tolist()
        assert data.state_dict()["position"].startswith("position-1:1:")
        for _ in data._opened():
            pass
    task.join()
    assert ids == list(range(61))
