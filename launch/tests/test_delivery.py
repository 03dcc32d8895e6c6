"""Every element of an epoch reaches exactly one rank exactly once, whole."""

import random

import pytest

import databases

KIB = 1024


@pytest.fixture
def entries(tmp_path):
    """Twenty elements."""
    return databases.write(tmp_path / "lmdb", databases.numbered(20))


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
@pytest.mark.parametrize("partitions", [1, 2, 7, 20, 30])
def test_any_number_of_partitions_and_ranks(supply, entries, partitions, ranks):
    supply(entries, "--partitions", partitions, ranks=ranks, epochs=2)


def test_one_entry(supply, tmp_path):
    supply(databases.write(tmp_path / "lmdb", databases.numbered(1)), "--partitions", 5, ranks=2)


def test_many_epochs(supply, entries):
    supply(entries, "--partitions", 3, ranks=2, epochs=40)


@pytest.mark.parametrize("block_elements", [1, 3, 1000])
def test_blocks_of_so_many_elements(supply, entries, block_elements):
    supply(entries, "--partitions", 2, "--block-elements", block_elements, ranks=2, epochs=3)


# A ring of two blocks that is used many times, and rings whose size is no multiple of the block's size.
@pytest.mark.parametrize(
    "sizes",
    [
        {"ring": "8KiB", "block": "4KiB"},
        {"ring": "12KiB", "block": "4KiB"},
        {"ring": "50000", "block": "5000"},
        {"ring": "1MiB", "block": "512KiB"},
    ],
    ids=str,
)
def test_rings_down_to_two_blocks(supply, tmp_path, sizes):
    elements = databases.numbered(600, bytes_of=lambda number: number * 7 % 700)
    supply(databases.write(tmp_path / "lmdb", elements), "--partitions", 5, ranks=2, epochs=2, **sizes)


def test_elements_from_no_byte_to_nearly_a_block(supply, tmp_path):
    # A block of one Datum needs less than 1 KiB besides its data: header, columns, small values, padding.
    block = 64 * KIB
    sizes = [0, 1, 63, 64, 65, 4095, 4096, block // 2, block - 2 * KIB, block - KIB]
    random.Random(1).shuffle(sizes)
    elements = databases.numbered(len(sizes) * 3, bytes_of=lambda number: sizes[number % len(sizes)])
    supply(databases.write(tmp_path / "lmdb", elements), "--partitions", 4, ranks=2, ring="128KiB", block="64KiB")


def test_elements_larger_than_a_page_of_lmdb(supply, tmp_path):
    elements = databases.numbered(12, bytes_of=lambda number: 300 * KIB + number)
    supply(databases.write(tmp_path / "lmdb", elements), "--partitions", 3, ranks=2)


def test_keys_of_any_byte(supply, tmp_path):
    keys = [bytes([byte]) for byte in range(256)]
    keys += [
        b"a/b/c.jpg",
        b"C:\\images\\1.png",
        b"\\x41",
        b"tab\there",
        b"line\nend\r",
        "größe".encode(),
        b"\xff\xfe\x00",
    ]
    keys += [b"k" * databases.KEY_BYTES_MAX, bytes(range(255, 0, -1))]
    elements = [(key, databases.datum(b"%d" % number, number)) for number, key in enumerate(keys)]
    supply(databases.write(tmp_path / "lmdb", elements), "--partitions", 9, ranks=2)


def test_every_kind_of_datum(supply, tmp_path):
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    elements = [
        (b"raw", databases.datum(bytes(range(24)), 7, 2, 3, 4)),
        (b"encoded", databases.datum(png, 3, encoded=True)),
        (b"encoded=false", databases.datum(b"raw", 3, encoded=False)),
        (b"float", databases.datum(label=1, channels=1, height=1, width=3, float_data=[0.0, -1.5, 3e38])),
        (b"data and float", databases.datum(b"data wins", 2, float_data=[1.0])),
        (b"negative label", databases.datum(b"x", -(2**31))),
        (b"large label", databases.datum(b"x", 2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1, encoded=True)),
        (b"nothing but a label", databases.datum_pb2.Datum(label=5)),
        (b"nothing at all", databases.datum_pb2.Datum()),
        (b"\xff\x80 \\ key", databases.datum(b"y", 4)),
    ]
    database = databases.write(tmp_path / "lmdb", elements)
    supply(database, "--partitions", 4, ranks=2, epochs=3)


def test_a_key_that_has_no_datum_is_left_out(supply, tmp_path):
    values = [(key, element.SerializeToString()) for key, element in databases.numbered(100)]
    # The tag of float_data, and four bytes.
    hidden = databases.write_values(tmp_path / "hidden", [*values, (b"num-samples", b"50000")])
    wanted = databases.write_values(tmp_path / "wanted", values)
    supply(hidden, "--skip-keys", "num-samples,no-such-key", expected=databases.expected_lines(wanted))


def test_the_same_seed_gives_the_same_order(supply, entries):
    """PlanSuite has the orders."""
    first, second = (
        [rank.lines for rank in supply(entries, "--partitions", 7, "--seed", 7, ranks=2, epochs=3)] for _ in range(2)
    )
    assert first == second
