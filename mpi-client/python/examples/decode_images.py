"""Decodes images in the workers of a DataLoader, and prints the mean brightness of each. Needs Pillow.

    launch/make-configs 2 /dev/shm/images conf
    spark-submit --master local[2] --jars spark-supplier.jar supply.py images photos conf --ranks 2 &
    mpirun -n 2 python decode_images.py conf --workers 2

Spark supplies the encoded files, for example JPEG. They are far smaller than their pixels, and workers decode them
while this process trains.
"""

import argparse
import io
from functools import partial

import numpy
import torch
from PIL import Image
from spark_supplier.torch import DataLoader, Dataset

BRIGHTEST = 255


def decode(side, batch):
    """The images of a batch as one tensor: (images, 3, side, side), from 0 to 1. A worker calls it."""
    images = [Image.open(io.BytesIO(content)).convert("RGB").resize((side, side)) for content in batch["content"]]
    pixels = torch.from_numpy(numpy.stack([numpy.asarray(image) for image in images]))
    return {"path": batch["path"], "pixels": pixels.permute(0, 3, 1, 2).float() / BRIGHTEST}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", metavar="CONFIG", help="folder with the config files of both sides")
    parser.add_argument("--batch-size", type=int, default=32, help="images in a batch (default 32)")
    parser.add_argument("--side", type=int, default=64, help="pixels of a side (default 64)")
    parser.add_argument("--workers", type=int, default=2, help="processes that decode (default 2)")
    arguments = parser.parse_args()
    dataset = Dataset(
        arguments.config,
        columns=["path", "content"],
        batch_size=arguments.batch_size,
        ragged={"content": "list"},
        transform=partial(decode, arguments.side),
    )
    with dataset:
        for epoch in dataset.epochs():
            for batch in DataLoader(epoch, num_workers=arguments.workers):
                for path, brightness in zip(batch["path"], batch["pixels"].mean(dim=(1, 2, 3)).tolist()):
                    print(f"decode_images: {path} epoch={epoch.number} brightness={brightness:.3f}")


if __name__ == "__main__":
    main()
