"""Host files, as launch/run-ranks and launch/supply-run read them."""

import pytest
from spark_supplier.launch import config_files, host_file
from spark_supplier.launch.command import Failure


def test_comments_blank_lines_and_missing_slots(tmp_path):
    file = tmp_path / "hosts"
    file.write_text("# all\n\nnode1 slots=4 # the first\nnode2\nnode3 max_slots=9 slots=2\n")
    assert host_file.read(file) == [("node1", 4), ("node2", 1), ("node3", 2)]


def test_what_is_written_can_be_read(tmp_path):
    nodes = [("node1", 4), ("node2", 1)]
    host_file.write(tmp_path / "hosts", nodes)
    assert host_file.read(tmp_path / "hosts") == nodes


def test_a_wrong_number_of_slots(tmp_path):
    (tmp_path / "hosts").write_text("node1\nnode2 slots=many\n")
    with pytest.raises(Failure, match="hosts:2: slots=many is not a number"):
        host_file.read(tmp_path / "hosts")


def test_what_other_programs_write(tmp_path):
    """A byte order mark in front, and slots as MPICH has them."""
    file = tmp_path / "hosts"
    file.write_text("\ufeffnode1 slots=2\nfe80::1 slots=1\n", encoding="utf-8")
    assert host_file.read(file) == [("node1", 2), ("fe80::1", 1)]
    file.write_text("node1 slots=2\nlocalhost:2\n", encoding="utf-8")
    with pytest.raises(Failure, match="hosts:2: localhost:2 is no name of a host: write 'localhost slots=2'"):
        host_file.read(file)
    file.write_text("\ufeff/dev/shm/a.map\n", encoding="utf-8")
    assert config_files.mapped_files(file) == ["/dev/shm/a.map"]


def test_a_host_with_two_lines(tmp_path):
    (tmp_path / "hosts").write_text("node1 slots=2\nnode2 slots=2\n# again\nnode1 slots=2\n")
    with pytest.raises(Failure, match="hosts:4: node1 has a line already: write one line for each host, with slots=n"):
        host_file.read(tmp_path / "hosts")


def test_a_missing_file(tmp_path):
    with pytest.raises(Failure, match="cannot read the host file .*: No such file or directory"):
        host_file.read(tmp_path / "hosts")
