"""Ways from a DataFrame to PyTorch batches.

Each way is a generator of epochs, an epoch an iterator of batches, a batch a dict of tensors by column. All but the
Supplier's cut Arrow's batches, or the rows that they have collected, into batches without a copy.
"""

import glob
import itertools
import shutil
import socket
import threading
import warnings

import pyarrow
import pyarrow.parquet
import torch
from spark_supplier.torch import Dataset

COLUMNS = ["pixels", "label"]
BATCH = 64
# About Arrow's memory. Nobody writes to it.
warnings.filterwarnings("ignore", "The given NumPy array is not writable")


class Background:
    """Runs a call in a thread. end() waits for it and raises what it has raised."""

    def __init__(self, call, timeout):
        self._timeout = timeout
        self._error = None
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call):
        try:
            call()
        except Exception as error:
            self._error = error

    def end(self):
        self._thread.join(self._timeout)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive():
            raise TimeoutError(f"Spark is still busy {self._timeout} s after its last batch")


def supply(frame, epochs, pair, shared_folder, timeout, resident=False):
    writer = frame.write.format("supply").mode("append").options(epochs=epochs, resident=resident, timeout=timeout)
    for name in ("mapped_files", "named_pipes"):
        writer = writer.option(name.replace("_", "-"), pair[name])
    saving = Background(writer.save, timeout)
    config = (pair["mapped_files"], pair["named_pipes"])
    with Dataset(config, 0, columns=COLUMNS, batch_size=BATCH, timeout=timeout) as dataset:
        yield from dataset.epochs()
    saving.end()


def parquet(frame, epochs, pair, shared_folder, timeout):
    folder = f"{shared_folder}/parquet"
    try:
        frame.write.parquet(folder)
        for _ in range(epochs):
            yield parquet_epoch(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parquet_epoch(folder):
    for path in sorted(glob.glob(f"{folder}/*.parquet")):
        with pyarrow.parquet.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield from batches_of(file.read_row_group(group, columns=COLUMNS))


def local_iterator(frame, epochs, pair, shared_folder, timeout):
    for _ in range(epochs):
        yield local_iterator_epoch(frame)


def local_iterator_epoch(frame):
    rows = frame.toLocalIterator(prefetchPartitions=True)
    while gathered := list(itertools.islice(rows, BATCH)):
        yield {
            "pixels": torch.tensor([row.pixels for row in gathered]),
            "label": torch.tensor([row.label for row in gathered]),
        }


def arrow_socket(frame, epochs, pair, shared_folder, timeout):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(timeout)
        port = server.getsockname()[1]
        partitions = frame.rdd.getNumPartitions()

        def send(batches):
            # Spark's own Python imports this.
            import socket

            import pyarrow

            with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("wb") as stream:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                writer = None
                for batch in batches:
                    writer = writer or pyarrow.ipc.new_stream(stream, batch.schema)
                    writer.write_batch(batch)
                if writer is not None:
                    writer.close()
            return iter(())

        for _ in range(epochs):
            sending = Background(frame.mapInArrow(send, "none int").count, timeout)
            yield arrow_socket_epoch(server, partitions)
            sending.end()


def arrow_socket_epoch(server, partitions):
    for _ in range(partitions):
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as stream, pyarrow.ipc.open_stream(stream) as reader:
            for batch in reader:
                yield from batches_of(batch)


def to_arrow(frame, epochs, pair, shared_folder, timeout):
    for _ in range(epochs):
        yield itertools.chain.from_iterable(map(batches_of, frame.toArrow().to_batches()))


def held_by_rank(frame, epochs, pair, shared_folder, timeout):
    """No Spark at all: the bound of every way, which the rank's own work leaves."""
    for _ in range(epochs):
        yield itertools.chain.from_iterable(map(batches_of, HELD))


# The DataFrame's record batches, which the rank fetches before anything is timed.
HELD = []


def batches_of(many):
    """The batches of an Arrow table or record batch. The last one may be smaller."""
    label = tensor(many.column("label"))
    pixels = tensor(many.column("pixels")).view(len(label), -1)
    for begin in range(0, len(label), BATCH):
        yield {"pixels": pixels[begin : begin + BATCH], "label": label[begin : begin + BATCH]}


def tensor(column):
    """The numbers of a column or of its lists, without a copy if they are contiguous."""
    whole = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if pyarrow.types.is_list(whole.type):
        whole = whole.flatten()
    return torch.from_numpy(whole.to_numpy(zero_copy_only=True))


WAYS = {
    "supply": supply,
    "parquet": parquet,
    "toLocalIterator": local_iterator,
    "mapInArrow": arrow_socket,
    "toArrow": to_arrow,
    "batches in the rank": held_by_rank,
}
