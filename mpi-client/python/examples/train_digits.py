"""Data-parallel training (PyTorch DDP over gloo) of a classifier of digits, fed by a DataFrame.

    launch/make-configs 2 /dev/shm/digits conf
    spark-submit --master local[2] --jars spark-supplier.jar \\
        supply.py lmdb train_lmdb conf --ranks 2 --epochs 10 --seed 1 &
    mpirun -n 2 python train_digits.py conf --save model.pt

    spark-submit --master local[2] --jars spark-supplier.jar supply.py lmdb test_lmdb conf --ranks 2 &
    mpirun -n 2 python train_digits.py conf --evaluate model.pt

With --checkpoint FOLDER --stop-after STEPS the ranks save their state and stop, also in the middle of an epoch. Spark's
run then fails, because they stopped early. With --resume FOLDER a new run gives them exactly the remaining samples, in
the same order.
"""

import argparse
import contextlib
import pathlib
import socket

import torch
import torch.distributed
from mpi4py import MPI
from spark_supplier.torch import Dataset
from torch.nn.parallel import DistributedDataParallel

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
    """Pixels from 0 to 1."""
    return batch["data"].reshape(-1, PIXELS).float() / BRIGHTEST


def train(arguments, dataset, samples):
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(PIXELS, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate, momentum=0.9)
    steps = 0
    if arguments.resume:
        saved = torch.load(arguments.resume / f"rank-{rank}.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        dataset.load_state_dict(saved["dataset"])
        steps = saved["steps"]
    for epoch in dataset.epochs():
        for batch in epoch:
            loss = torch.nn.functional.cross_entropy(model(images(batch)), batch["label"])
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
                    "steps": steps,
                }
                torch.save(state, arguments.checkpoint / f"rank-{rank}.pt")
                torch.distributed.barrier()
                return f"stopped after {steps} steps, in epoch {epoch.number}"
    if rank == 0 and arguments.save:
        torch.save(model.module.state_dict(), arguments.save)
    return None


def evaluate(path, dataset):
    """Over all ranks: the number of images that the model classifies correctly, and the number of images."""
    model = torch.nn.Linear(PIXELS, CLASSES)
    model.load_state_dict(torch.load(path))
    counts = torch.zeros(2, dtype=torch.int64)
    with torch.no_grad():
        for batch in dataset:
            correct = (model(images(batch)).argmax(1) == batch["label"]).sum()
            counts += torch.tensor([correct, len(batch["label"])])
    torch.distributed.all_reduce(counts)
    return counts.tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", metavar="CONFIG", help="folder with the config files of both sides")
    parser.add_argument("--batch-size", type=int, default=32, help="images in a batch of each rank (default 32)")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="(default 0.1)")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE", help="save the model here at the end")
    parser.add_argument(
        "--evaluate", type=pathlib.Path, metavar="FILE", help="do not train; classify with this saved model"
    )
    parser.add_argument("--checkpoint", type=pathlib.Path, metavar="FOLDER", help="--stop-after saves here")
    parser.add_argument("--stop-after", type=int, metavar="STEPS", help="save and stop after this number of steps")
    parser.add_argument("--resume", type=pathlib.Path, metavar="FOLDER", help="resume from what --stop-after saved")
    parser.add_argument(
        "--samples", type=pathlib.Path, metavar="FILE", help="write the keys of each step's images to FILE.RANK"
    )
    arguments = parser.parse_args()
    if arguments.stop_after and not arguments.checkpoint:
        parser.error("--stop-after needs --checkpoint")

    comm = MPI.COMM_WORLD
    connect(comm)
    stopped = None
    with contextlib.ExitStack() as stack:
        samples = (
            stack.enter_context(open(f"{arguments.samples}.{comm.rank}", "w", encoding="utf-8"))
            if arguments.samples
            else None
        )
        columns = COLUMNS + ["key"] * (samples is not None)
        dataset = Dataset(
            arguments.config,
            columns=columns,
            batch_size=arguments.batch_size,
            dtypes={"label": torch.long},
            # Training synchronizes the ranks in each step. Evaluation does not.
            uneven="keep" if arguments.evaluate else "pad",
        )
        stack.push(dataset)
        if arguments.evaluate:
            correct, count = evaluate(arguments.evaluate, dataset)
            if comm.rank == 0:
                print(f"train_digits: evaluated={count} accuracy={correct / count:.3f}")
        else:
            stopped = train(arguments, dataset, samples)
            if stopped:
                dataset.abort(stopped)
            if comm.rank == 0:
                print(f"train_digits: {stopped or 'trained'}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
