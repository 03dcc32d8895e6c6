"""The start of a process group in a rank."""

import socket
import threading

import pytest

pytest.importorskip("torch")

from supply.ranks import process_group  # noqa: E402


def test_a_rank_waits_until_rank_0_listens():
    port = process_group.free_port()
    servers = []
    rank_0 = threading.Timer(0.3, lambda: servers.append(socket.create_server(("127.0.0.1", port))))
    rank_0.start()
    process_group.wait_for_rank_0("127.0.0.1", port)
    rank_0.join()
    with servers[0] as server:
        server.settimeout(10)
        connection, _ = server.accept()
        connection.close()
