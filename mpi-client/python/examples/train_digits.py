"""Data-parallel training (PyTorch DDP over gloo) of a classifier of digits, fed by a DataFrame; can be stopped and gone on with anywhere.

    launch/make-configs 2 /dev/shm/digits conf
    spark-submit --master local[2] --jars spark-supplier.jar supply_digits.py train_lmdb conf --ranks 2 --epochs 10 --seed 1 &
    mpirun -n 2 python train_digits.py conf --epochs 10 --save model.pt

    spark-submit --master local[2] --jars spark-supplier.jar supply_digits.py test_lmdb conf --ranks 2 &
    mpirun -n 2 python train_digits.py conf --evaluate model.pt

With --checkpoint FOLDER --stop-after STEPS the ranks save where they are and end (Spark's run fails: they stopped early); started
again with --resume FOLDER they get, in the same order, exactly the samples that they would have got.
"""

import argparse
import contextlib
import pathlib
import socket

import torch
import torch.distributed
from mpi4py import MPI
from supply.torch import SupplyDataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

PIXELS, CLASSES, BRIGHTEST = 64, 10, 16
COLUMNS = ["data", "label"]


def connect(comm):
    """A gloo process group of the ranks of an MPI communicator."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    host = "127.0.0.1" if node.size == comm.size else socket.gethostname()
    node.Free()
    with socket.socket() as probe:
        probe.bind(("", 0))
        host, port = comm.bcast((host, probe.getsockname()[1]))
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://{host}:{port}", rank=comm.rank, world_size=comm.size
    )


def images(batch):
    """Numbers from 0 to 1. Each operation makes a new tensor: the batch itself lies in Spark's memory and can not be written."""
    return batch["data"].reshape(-1, PIXELS).float() / BRIGHTEST


def train(arguments, dataset, samples):
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(PIXELS, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate, momentum=0.9)
    epoch, steps = 0, 0
    if arguments.resume:
        saved = torch.load(arguments.resume / f"rank-{rank}.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        dataset.load_state_dict(saved["dataset"])
        epoch, steps = saved["epoch"], saved["steps"]
    for epoch in range(epoch, arguments.epochs):
        dataset.set_epoch(epoch)
        for batch in DataLoader(dataset, batch_size=None):
            loss = torch.nn.functional.cross_entropy(model(images(batch)), batch["label"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if samples:
                print(*(bytes(key).decode() for key in batch["key"].numpy()), file=samples)
            if steps == arguments.stop_after:
                arguments.checkpoint.mkdir(parents=True, exist_ok=True)
                state = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "dataset": dataset.state_dict(),
                    "epoch": epoch,
                    "steps": steps,
                }
                torch.save(state, arguments.checkpoint / f"rank-{rank}.pt")
                torch.distributed.barrier()
                return f"stopped after {steps} steps, in epoch {epoch}"
    if rank == 0 and arguments.save:
        torch.save(model.module.state_dict(), arguments.save)
    return None


def evaluate(path, dataset):
    """How many of the images of all ranks are classified rightly, and how many they are."""
    model = torch.nn.Linear(PIXELS, CLASSES)
    model.load_state_dict(torch.load(path))
    counts = torch.zeros(2, dtype=torch.int64)
    with torch.no_grad():
        for batch in dataset:
            right = (model(images(batch)).argmax(1) == batch["label"]).sum()
            counts += torch.tensor([right, len(batch["label"])])
    torch.distributed.all_reduce(counts)
    return counts.tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", metavar="CONFIG", help="folder with the config files of both sides")
    parser.add_argument("--epochs", type=int, default=10, help="as supply_digits.py's (default 10)")
    parser.add_argument("--batch-size", type=int, default=32, help="images of a batch, on each rank (default 32)")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="(default 0.1)")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE", help="where the model goes at the end")
    parser.add_argument(
        "--evaluate", type=pathlib.Path, metavar="FILE", help="a saved model: classify with it instead of training"
    )
    parser.add_argument("--checkpoint", type=pathlib.Path, metavar="FOLDER", help="where --stop-after saves")
    parser.add_argument("--stop-after", type=int, metavar="STEPS", help="save and end behind so many steps")
    parser.add_argument("--resume", type=pathlib.Path, metavar="FOLDER", help="go on where --stop-after has saved")
    parser.add_argument(
        "--samples", type=pathlib.Path, metavar="FILE", help="FILE.RANK gets the keys of each step's images"
    )
    arguments = parser.parse_args()
    if arguments.stop_after and not arguments.checkpoint:
        parser.error("--stop-after needs --checkpoint")

    comm = MPI.COMM_WORLD
    connect(comm)
    stopped = None
    with contextlib.ExitStack() as stack:
        samples = stack.enter_context(open(f"{arguments.samples}.{comm.rank}", "w")) if arguments.samples else None
        columns = COLUMNS + ["key"] * (samples is not None)
        # All ranks classify all their images, but must train in step.
        uneven = "keep" if arguments.evaluate else "pad"
        dataset = SupplyDataset(arguments.config, columns=columns, batch_size=arguments.batch_size, uneven=uneven)
        stack.push(dataset)
        if arguments.evaluate:
            right, count = evaluate(arguments.evaluate, dataset)
            if comm.rank == 0:
                print(f"train_digits: evaluated={count} accuracy={right / count:.3f}")
        else:
            stopped = train(arguments, dataset, samples)
            if stopped:
                dataset.abort(stopped)
            if comm.rank == 0:
                print(f"train_digits: {stopped or 'trained'}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
