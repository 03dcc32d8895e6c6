"""An LMDB whose pages lie. liblmdb checks few of them, so the Supplier may crash: the ranks must end in any case."""

import struct

import pytest

import databases

PAGE_BYTES, HEADER_BYTES = 4096, 16
BRANCH, LEAF = 1, 2


def pages(data, kind):
    """The places of the pages of a kind, without the meta pages."""
    starts = range(2 * PAGE_BYTES, len(data), PAGE_BYTES)
    return [start for start in starts if struct.unpack_from("<H", data, start + 10)[0] == kind]


def nodes(data, page):
    lower = struct.unpack_from("<H", data, page + 12)[0]
    return [page + at for at in struct.unpack_from(f"<{(lower - HEADER_BYTES) // 2}H", data, page + HEADER_BYTES)]


def every_node(data, kind, number):
    """Stores it in front: the size of a leaf's value, the page of a branch's child."""
    for page in pages(data, kind):
        for node in nodes(data, page):
            struct.pack_into("<I", data, node, number)


def values_longer_than_the_file(data):
    every_node(data, LEAF, 0x7FFFFFFF)


def children_that_are_not_there(data):
    every_node(data, BRANCH, 0x7FFFFFFF)


def nodes_outside_their_page(data):
    for page in pages(data, LEAF):
        for place in range(page + HEADER_BYTES, page + HEADER_BYTES + 2 * len(nodes(data, page)), 2):
            struct.pack_into("<H", data, place, 0xFFF0)


@pytest.mark.parametrize(
    "lie, options",
    [
        (values_longer_than_the_file, ("--in-place",)),
        *(
            pytest.param(lie, (), marks=pytest.mark.long)
            for lie in (children_that_are_not_there, nodes_outside_their_page)
        ),
    ],
    ids=lambda value: value.__name__.replace("_", " ") if callable(value) else " ".join(value) or "copied",
)
def test_the_ranks_end_with_an_error(supply_run, tmp_path, lie, options):
    database = databases.write(tmp_path / "lmdb", databases.numbered(300))
    data = bytearray((database / "data.mdb").read_bytes())
    assert pages(data, BRANCH) and len(pages(data, LEAF)) > 3
    lie(data)
    (database / "data.mdb").write_bytes(data)
    # What a JVM that crashes prints, and leaves in the working folder.
    java = f"-XX:+DisplayVMOutputToStderr -XX:-CreateCoredumpOnCrash -XX:ErrorFile={tmp_path}/crash"
    conf = f"--conf=spark.driver.extraJavaOptions={java}"
    run = supply_run("--lmdb", database, "--ranks", 2, conf, *options)
    assert run.finish() not in (0, None)
    assert any(line.startswith("supply-cat: ") for line in run.errors), run.errors
