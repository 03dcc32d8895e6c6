"""Where the project's programs are, what this machine is, and how much memory processes use."""

import contextlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import threading

from spark_supplier.launch.command import Failure
from spark_supplier.launch.spark import Spark


class BenchError(Exception):
    """Something that the benchmark needs does not work."""


ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "bench"
PROGRAMS = ROOT / "build" / "bench-c"
VENV_PYTHON = ROOT / "build" / "venv" / "bin" / "python"
# The environment of the package, with PyTorch.
SUPPLY_PYTHON = ROOT / "build" / "wheel-venv" / "bin" / "python"


def spark():
    """The Spark of the launchers, with the jar for it."""
    try:
        return Spark()
    except Failure as failure:
        raise BenchError(str(failure)) from None


def pyspark():
    """PYTHONPATH for a Python without PySpark."""
    return os.pathsep.join(map(str, spark().home.glob("python/lib/*.zip")))


def has_program(name):
    """Some programs are built only if this machine has what they need."""
    return os.access(PROGRAMS / name, os.X_OK)


def program(name):
    path = PROGRAMS / name
    if not has_program(name):
        sys.exit(f"bench: error: no {path}: run 'make bench', which builds it")
    return str(path)


def run_in_venv():
    """Continues in the project's own Python, which has the packages of configs/requirements.txt."""
    if not VENV_PYTHON.exists():
        sys.exit(f"bench: error: no {VENV_PYTHON}: run 'make build'")
    if pathlib.Path(sys.prefix) != VENV_PYTHON.parents[1]:
        os.execv(VENV_PYTHON, [str(VENV_PYTHON), *sys.argv])


def read_line(process, stream, seconds, name):
    """The next line of one of its streams; "" at the end. Kills the process if none comes."""
    late = threading.Event()

    def end():
        late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        line = stream.readline()
    finally:
        timer.cancel()
    if late.is_set():
        raise BenchError(f"{name} has written nothing for {seconds} s, and was killed")
    return line


def first_match(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else None


def describe():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        processor = first_match(r"^model name\s*: (.*)$", file.read())
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(first_match(r"^MemTotal:\s*(\d+) kB", file.read())) << 10
    caches = subprocess.run(
        ["lscpu"], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
    ).stdout
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "last_level_cache": first_match(r"^L3 cache:\s*(.*)$", caches),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
    }


def available_memory():
    """Bytes that programs can still get."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        return int(first_match(r"^MemAvailable:\s*(\d+) kB", file.read())) << 10


def peak_memory(pid):
    """Peak of the resident bytes of a living process, shared pages included."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(first_match(r"^VmHWM:\s*(\d+) kB", file.read())) << 10


def forget_peak_memory(pid):
    """Restarts peak_memory(). Returns what is resident now."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")
    return peak_memory(pid)


def tree(pid):
    """The ids of a process and its descendants. Some may have just ended."""
    pids = [pid]
    for one in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                pids += map(int, (task / "children").read_text(encoding="utf-8").split())
        yield one


def _of_each(measure, pid):
    """Measures a process and its descendants. Processes that have just ended are left out."""
    found, program = {}, os.readlink(f"/proc/{pid}/exe")
    for one in tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # Between fork and exec a JVM's child has the JVM's own memory.
            if one == pid or os.readlink(f"/proc/{one}/exe") != program:
                found[one] = measure(one)
    return found


def forget_peak_memory_of_all(pid):
    """forget_peak_memory() of a process and its descendants, for growth_of_all()."""
    return _of_each(forget_peak_memory, pid)


def growth_of_all(pid, before):
    """The most that they have grown together since then, new processes included."""
    return sum(peak - before.get(one, 0) for one, peak in _of_each(peak_memory, pid).items())


def processor_seconds(pid):
    """Processor time of a process and its descendants, with those that have ended."""
    seconds = 0
    for one in tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            seconds += sum(_processor_seconds(one))
    return seconds


def ended_children_seconds(pid):
    """Processor time of those children of a process that have ended, with their own ended children."""
    return sum(_processor_seconds(pid)[2:])


def _processor_seconds(pid):
    """User and system time of a process, and those of the children that it has waited for."""
    return [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in stat_fields(pid)[11:15]]


def stat_fields(pid):
    """The fields of /proc/PID/stat after the name in parentheses: state, parent, …"""
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
