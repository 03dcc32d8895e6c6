"""The start of a process group in a rank."""

import multiprocessing
import os
import socket
import struct
import threading
from typing import Any

import pytest
from spark_supplier.errors import RunError
from spark_supplier.node import process_group

# Of Linux 6.3: the ports from which the kernel chooses a free one for this socket. Python has no name for it.
IP_LOCAL_PORT_RANGE = 51


def test_a_rank_waits_until_rank_0_listens():
    port = process_group.hold_port()
    servers = []
    rank_0 = threading.Timer(0.3, lambda: servers.append(socket.create_server(("127.0.0.1", port))))
    rank_0.start()
    process_group.wait_for_rank_0("127.0.0.1", port)
    rank_0.join()
    with servers[0] as server:
        server.settimeout(10)
        connection, _ = server.accept()
        connection.close()


@pytest.mark.parametrize("reuses", [False, True])
@pytest.mark.parametrize("connects", [False, True])
def test_nobody_gets_the_port_of_a_rank_by_chance(reuses, connects):
    port = process_group.hold_port()
    with socket.socket() as other, socket.create_server(("127.0.0.1", 0)) as server:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuses)
        try:
            other.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("HH", port, port))
        except OSError:
            pytest.skip("this kernel does not limit the ports of a socket")
        with pytest.raises(OSError, match="in use|assign requested"):
            other.connect(server.getsockname()) if connects else other.bind(("", 0))


def begin_group(rank, ranks, local_ranks, gpus, backend, port, says, all_have_said):
    """A rank of a run with one node for each `local_ranks` ranks. There is no GPU here: the choice alone is tested,
    and neither that nccl starts nor that the devices are the right ones."""
    import torch
    from torch import distributed

    devices: list[int] = []
    backends: list[str] = []
    torch.cuda.is_available = lambda: gpus[rank] > 0
    torch.cuda.device_count = lambda: gpus[rank]
    torch.cuda.set_device = devices.append
    if backend != "gloo" and min(gpus) >= local_ranks:

        def begin(name, store, **_):
            backends.append(name)
            # Like the real one, it keeps the store.
            distributed.kept_by_test = store

        distributed.init_process_group = begin
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank % local_ranks), LOCAL_WORLD_SIZE=str(local_ranks),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), SUPPLY_HOST=f"n{rank // local_ranks}", GLOO_SOCKET_IFNAME="lo",
    )  # fmt: skip
    try:
        process_group.init_process_group(backend)
        says.send((devices, backends or [distributed.get_backend()]))
    except RunError as error:
        says.send(str(error))
    # Rank 0 has the store.
    all_have_said.wait(120)


@pytest.mark.parametrize(
    "local_ranks, gpus, backend, expected",
    [
        (2, [0, 0], "auto", [([], ["gloo"])] * 2),
        (2, [2, 2], "auto", [([0], ["nccl"]), ([1], ["nccl"])]),
        (2, [1, 1], "auto", [([0], ["gloo"]), ([0], ["gloo"])]),
        (1, [1, 0], "auto", [([0], ["gloo"]), ([], ["gloo"])]),
        (2, [1, 1], "nccl", ["n0 has 2 ranks and 1 GPUs: use fewer ranks"] * 2),
    ],
    ids=["no GPU", "a GPU for each", "one for two", "one node without", "nccl, one for two"],
)
def test_nccl_needs_a_gpu_for_each_rank(local_ranks, gpus, backend, expected, capfd):
    port = process_group.hold_port()
    fork = multiprocessing.get_context("fork")
    all_have_said = fork.Event()
    ends = [fork.Pipe(duplex=False) for _ in gpus]
    ranks = [
        fork.Process(
            target=begin_group, args=(rank, len(gpus), local_ranks, gpus, backend, port, ends[rank][1], all_have_said)
        )
        for rank in range(len(gpus))
    ]
    for rank in ranks:
        rank.start()
    said: list[Any] = [receiving.recv() if receiving.poll(120) else None for receiving, _ in ends]
    all_have_said.set()
    for rank in ranks:
        rank.join()
    if backend == "nccl":
        assert [expected[rank] in said[rank] for rank in range(len(gpus))] == [True] * len(gpus)
        return
    assert said == expected
    is_short = max(gpus) > 0 and said[0][1] == ["gloo"]
    assert (
        "supply: the ranks use gloo: nccl needs a GPU for each rank, and n0 has" in capfd.readouterr().err
    ) == is_short
