"""What fio reads of a folder's files, one after the other, past the page cache's copies."""

import json
import shutil
import subprocess

from engine.failure import BenchError

LIMIT_SECONDS = 300


def is_installed():
    return shutil.which("fio") is not None


def read_gb_s(folder):
    command = [
        "fio",
        "--name=read",
        "--readonly",
        f"--opendir={folder}",
        "--file_service_type=sequential",
        "--rw=read",
        "--bs=4M",
        "--ioengine=psync",
        "--invalidate=1",
        "--output-format=json",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True)
    except subprocess.TimeoutExpired:
        raise BenchError(f"fio has read {folder} for {LIMIT_SECONDS} s and not ended") from None
    except subprocess.CalledProcessError as error:
        raise BenchError(f"fio ended with status {error.returncode}: {error.stderr.strip()}") from None
    # A line about the files that it has found comes first.
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]["bw_bytes"] / 1e9
