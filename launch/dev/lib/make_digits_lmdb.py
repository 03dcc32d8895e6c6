"""Makes Caffe-style LMDBs of the 1,797 handwritten digits that come inside scikit-learn."""

import argparse
import pathlib
import sys
import tempfile

import datum_pb2
import lmdb
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HELD_OUT = 360
SEED = 0
KEY_FORMAT = "%08d"


def write_lmdb(path, images, labels):
    """Writes a Datum for each image: 1 x 8 x 8, one byte a pixel (0 to 16), with the image's number as the key."""
    values = [
        datum_pb2.Datum(channels=1, height=8, width=8, data=image.tobytes(), label=int(label)).SerializeToString()
        for image, label in zip(images.astype("uint8"), labels)
    ]
    # The map size is a limit: the file grows only as it is written.
    with lmdb.open(str(path), map_size=1 << 30, subdir=True) as environment:
        with environment.begin(write=True) as transaction:
            for number, value in enumerate(values):
                transaction.put((KEY_FORMAT % number).encode(), value, append=True)
        environment.sync(True)


def make_digits(folder):
    if folder.exists():
        sys.exit(f"make-digits-lmdb: error: {folder} is there already: remove it, or name another FOLDER")
    digits = load_digits()
    train_images, test_images, train_labels, test_labels = train_test_split(
        digits.images, digits.target, test_size=HELD_OUT, stratify=digits.target, random_state=SEED
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The folder gets its name when it is complete.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        made = pathlib.Path(temporary, "made")
        for name, images, labels in (
            ("train_lmdb", train_images, train_labels),
            ("test_lmdb", test_images, test_labels),
        ):
            (made / name).mkdir(parents=True)
            write_lmdb(made / name, images, labels)
        made.rename(folder)


def main():
    parser = argparse.ArgumentParser(
        prog="make-digits-lmdb",
        description=f"{__doc__} FOLDER/test_lmdb holds out {HELD_OUT} of them, with each digit's "
        "share; FOLDER/train_lmdb has the others.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    make_digits(parser.parse_args().folder.absolute())


if __name__ == "__main__":
    main()
