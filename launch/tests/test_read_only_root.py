"""The launchers where nothing but /dev/shm can be written, as in a pod with a read-only root and no volumes."""

import json
import os
import shutil
import subprocess

import pytest

from places import LAUNCH

_INSIDE = """
for folder in / /tmp /var/tmp; do
    ! mountpoint -q "$folder" || mount -o remount,bind,ro "$folder" || exit 77
done
cd / && exec "$@"
"""


def read_only(*command):
    """Runs a command there."""
    if not shutil.which("unshare"):
        pytest.skip("this machine has no unshare")
    words = ["unshare", "--mount", "bash", "-c", _INSIDE, "bash", *map(str, command)]
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=240)
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("this user may make no read-only mount")
    return done


def test_the_doctor_names_the_folder(make_pairs):
    done = read_only(LAUNCH / "supply-doctor", *make_pairs().options(), "--json")
    assert done.stderr == "" and done.stdout, done
    found = {finding["check"]: finding for finding in map(json.loads, done.stdout.splitlines())}
    assert found["temporary"]["status"] == "warning"
    assert "/tmp cannot be written (Read-only file system)" in found["temporary"]["text"]
    assert "TMPDIR" in found["temporary"]["fix"] and "emptyDir" in found["temporary"]["fix"]
    assert found["spark"]["status"] == "skipped" and "set TMPDIR" in found["spark"]["fix"]
    assert found["pairs"]["status"] == "ok" and done.returncode == 0


def test_a_run_names_the_setting(tmp_path, make_pairs):
    run = [LAUNCH / "supply-run", "--lmdb", tmp_path, "--ranks", 1, *make_pairs().options(), "--", "true"]
    done = read_only(*run)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("supply-run: error: there is no folder for temporary files") and "set TMPDIR" in line
