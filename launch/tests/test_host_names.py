"""Host files with names for which no name server answers."""

import collections
import os
import shutil
import subprocess
import sys

import pytest

import databases
from places import LAUNCH
from ranks import END_OF_PATIENCE

# A machine without a network, with a name server that notes questions, and does not answer.
_INSIDE = """
ip link set lo up && mount --bind "$1" /etc/resolv.conf || exit 77
"$2" -c '
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
with open(sys.argv[1], "wb", buffering=0) as questions:
    while True:
        question = server.recv(512)
        name, end = [], 12
        while question[end]:
            name.append(question[end + 1 : end + 1 + question[end]])
            end += 1 + question[end]
        questions.write(b".".join(name) + b" " + question[:2].hex().encode() + b"\\n")
' "$3" &
server=$!
shift 3
"$@"
status=$?
kill $server
exit $status
"""


def _without_name_servers(folder, command):
    """Runs a command. Returns its outcome, and the names that it asked for with the number of questions."""
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:2\n")
    words = [folder / "resolv.conf", sys.executable, folder / "questions", *command]
    if not shutil.which("unshare"):
        pytest.skip("this machine has no unshare")
    done = subprocess.run(
        ["unshare", "--net", "--mount", "bash", "-c", _INSIDE, "bash", *map(str, words)],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * END_OF_PATIENCE,
    )
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("this user may not make a machine without a network")
    lines = (folder / "questions").read_text().splitlines()
    return done, collections.Counter(line.split()[0] for line in set(lines))


@pytest.mark.long
@pytest.mark.parametrize("count", [3, 6])
def test_unknown_hosts_are_looked_up_once_and_named(tmp_path, make_pairs, count):
    hosts = [f"node-{i}.test" for i in range(count)]
    (tmp_path / "hosts").write_text("\n".join(hosts))
    entries = databases.write(tmp_path / "lmdb", databases.numbered(100))
    pairs = make_pairs(count)
    command = [LAUNCH / "supplier", "--lmdb", entries, *pairs.options(), "--ranks", count]
    options = ["--hosts", tmp_path / "hosts", "--timeout", 10, "--master", f"local[{count}]"]
    done, questions = _without_name_servers(tmp_path, [*command, *options])
    assert done.returncode != 0
    error = done.stderr.splitlines()[-1]
    assert f"0 of {count} ranks have a slot: node-0.test offers 0 cores, needs 1; node-1.test offers" in error
    warnings = [line for line in done.stderr.splitlines() if "no answer for the names" in line]
    assert len(warnings) == 1 and all(host in warnings[0] for host in hosts)
    # One look-up of each: a question for each kind of address, which is sent twice with the same number.
    assert {host: questions[host] for host in hosts} == dict.fromkeys(hosts, 2)
