"""torch.distributed for a rank's function."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from typing import TYPE_CHECKING

from spark_supplier.errors import RunError

if TYPE_CHECKING:
    from torch.distributed import TCPStore

# Rank 0 may still load PyTorch. Later PyTorch itself waits.
_STORE_SECONDS = 10
_FIRST_RETRY_SECONDS = 0.005
_RETRY_SECONDS = 0.05

_held: list[socket.socket] = []


def hold_port() -> int:
    """A TCP port for MASTER_PORT. This process holds it until it holds another one.

    With SO_REUSEADDR, which servers set, another socket may bind and listen on it as long as this one does not listen.
    So PyTorch can use it, and so can a function that makes a store of its own; and the kernel gives it to nobody who
    asks for any free port.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    for earlier in _held:
        earlier.close()
    _held[:] = [holder]
    return int(holder.getsockname()[1])


def init_process_group(backend: str | None, functions: int = 1) -> None:
    """Initializes the default process group: of this rank's function. None: does nothing.

    backend: "auto" is gloo for tensors on CPUs, and nccl for those on GPUs if each rank of the run has one of its own.
    functions: how many the run has. Rank r has number r % functions, and MASTER_PORT is of that function.
    """
    if backend is None:
        return
    import torch
    from torch import distributed
    from torch.distributed.constants import default_pg_timeout

    all_ranks = int(os.environ["WORLD_SIZE"])
    rank, world_size = int(os.environ["RANK"]) // functions, all_ranks // functions
    local_rank, local_ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    here = f"{os.environ['SUPPLY_HOST']} has {local_ranks} ranks and {gpus} GPUs"
    if "nccl" in backend and gpus < local_ranks:
        raise RunError(
            f"backend is '{backend}', and nccl needs a GPU for each rank, but {here}: use fewer ranks, or backend="
            "'gloo'"
        )
    if local_ranks == all_ranks:
        # gloo would use the interface of the host name, which may not resolve.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank != 0:
        wait_for_rank_0(address, port)
    store = distributed.TCPStore(address, port, world_size, rank == 0, timeout=default_pg_timeout)
    if backend == "auto":
        backend = _of_gpus() if _have_all(store, world_size, gpus >= local_ranks) else "gloo"
        if backend == "gloo" and gpus > 0 and local_rank == 0:
            print(f"supply: the ranks use gloo: nccl needs a GPU for each rank, and {here}", file=sys.stderr)
    if gpus > 0:
        # Ranks that have no GPU of their own share.
        torch.cuda.set_device(local_rank % gpus)
    distributed.init_process_group(backend, store=store, rank=rank, world_size=world_size)


def _of_gpus() -> str:
    """With gloo beside nccl a function that ignores the GPU runs, too. PyTorch has that from 2.0."""
    import torch

    return "nccl" if torch.__version__.startswith("1.") else "cpu:gloo,cuda:nccl"


def _have_all(store: TCPStore, world_size: int, has: bool) -> bool:
    """Whether all ranks have something. Each rank asks."""
    store.add("supply/lacking", 0 if has else 1)
    if store.add("supply/asked", 1) == world_size:
        lacking = store.add("supply/lacking", 0)
        store.set("supply/have", "no" if lacking else "yes")
    return bool(store.get("supply/have") == b"yes")


def wait_for_rank_0(host: str, port: int) -> None:
    """Until rank 0 listens. PyTorch would sleep for a second after a refused connection."""
    end, pause = time.monotonic() + _STORE_SECONDS, _FIRST_RETRY_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            socket.create_connection((host, port), _STORE_SECONDS).close()
            return
        time.sleep(pause)
        pause = min(1.5 * pause, _RETRY_SECONDS)


def is_initialized() -> bool:
    """Whether there is a default process group."""
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and distributed.is_initialized()


def end_process_group() -> None:
    """And the groups within it. A function may have ended it, too."""
    if is_initialized():
        sys.modules["torch.distributed"].destroy_process_group()
