"""Where the project's programs are, what this machine is, and what processor time and memory processes have."""

import atexit
import contextlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import threading
import time

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

# The same with other loaders of data (make loaders).
LOADERS_PYTHON = ROOT / "build" / "loaders-venv" / "bin" / "python"
_GROUPS = pathlib.Path("/sys/fs/cgroup")


def spark():
    """The Spark of the launchers, with the jar for it."""
    try:
        return Spark()
    except Failure as failure:
        raise BenchError(str(failure)) from None


def has_pytorch(name):
    """Whether benchmark `name` can train. Says so if it cannot."""
    found = subprocess.run([SUPPLY_PYTHON, "-c", "import torch"], capture_output=True).returncode == 0
    if not found:
        print(f"bench/{name}: skipped: no PyTorch (on Debian: apt-get install python3-torch)", file=sys.stderr)
    return found


def has_program(name):
    """Some programs are built only if this machine has what they need."""
    return os.access(PROGRAMS / name, os.X_OK)


def program(name):
    path = PROGRAMS / name
    if not has_program(name):
        sys.exit(f"bench: error: no {path}: run 'make bench', which builds it")
    return str(path)


def run_in_venv():
    """Continues in the project's own Python, which has the packages of configs/dev/requirements.txt."""
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


def output_of(*command):
    """Of a program, its first line. "none": it is not there."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    except FileNotFoundError:
        return "none"
    return done.stdout.partition("\n")[0]


def provenance():
    """From which sources, when and with what."""
    changed = "" if not output_of("git", "status", "--porcelain") else ", changed"
    # Without an import of PyTorch, which takes seconds: each benchmark asks.
    pytorch = "from importlib.metadata import distributions; print(*[d.version for d in distributions(name='torch')])"
    core = " ".join(file.name for file in spark().home.glob("jars/spark-core_*.jar"))
    return {
        "commit": output_of("git", "rev-parse", "HEAD")[:12] + changed,
        "date": time.strftime("%Y-%m-%d"),
        "Java": output_of("java", "-version"),
        "compiler": output_of("cc", "--version"),
        "Python": output_of(SUPPLY_PYTHON, "--version").removeprefix("Python "),
        "Spark": first_match(r"spark-core_[0-9.]+-(\S+)\.jar", core),
        "PyTorch": output_of(SUPPLY_PYTHON, "-c", pytorch),
    }


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
        "provenance": provenance(),
    }


def available_memory():
    """Bytes that programs can still get."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        return int(first_match(r"^MemAvailable:\s*(\d+) kB", file.read())) << 10


class Groups:
    """
    A control group (version 1 or 2) of this process and all that it starts: the kernel counts their processor time.

    Times of processes do not do: Spark's Python daemon lets the kernel forget those of its children, ranks among them.
    """

    def __init__(self):
        """Raises OSError if this user may not make groups: mostly only root may."""
        self._version1 = (_GROUPS / "cpuacct").exists()
        name = f"supply-bench-{os.getpid()}"
        self._group = _GROUPS / "cpuacct" / name if self._version1 else _GROUPS / name
        # A group of version 2 that has groups has no processes.
        self._inner = self._group if self._version1 else self._group / "all"
        self._made = []
        try:
            self._make(self._group)
            if not self._version1:
                with contextlib.suppress(OSError):
                    (self._group / "cgroup.subtree_control").write_text("+memory", encoding="utf-8")
                self._make(self._inner)
            (self._inner / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")
        except OSError:
            self._remove()
            raise

    def _make(self, group):
        group.mkdir()
        self._made.append(group)

    def used_seconds(self):
        if self._version1:
            return int((self._group / "cpuacct.usage").read_text(encoding="utf-8")) / 1e9
        return int(first_match(r"^usage_usec (\d+)", (self._group / "cpu.stat").read_text(encoding="utf-8"))) / 1e6

    def limit_memory(self, limit):
        """Another group, whose memory and page cache have a limit. Returns the file that takes its processes' ids."""
        group = _GROUPS / "memory" / self._group.name if self._version1 else self._group / "limited"
        self._make(group)
        name = "memory.limit_in_bytes" if self._version1 else "memory.max"
        (group / name).write_text(str(limit), encoding="utf-8")
        return group / "cgroup.procs"

    def close(self):
        (_GROUPS / ("cpuacct" if self._version1 else "") / "cgroup.procs").write_text(
            str(os.getpid()), encoding="utf-8"
        )
        self._remove()

    def _remove(self):
        for group in reversed(self._made):
            # Its last process may be ending.
            for _ in range(100):
                with contextlib.suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.1)


def enter_group(name):
    """From now on used_seconds() counts this process and all that it starts."""
    global groups
    try:
        groups = Groups()
        atexit.register(groups.close)
    except OSError as error:
        print(
            f"bench/{name}: no control group, so the time of ranks that Spark starts is unknown, and their rounds "
            f"count as disturbed: {error}",
            file=sys.stderr,
        )


groups = None


def used_seconds():
    """Processor time of this process and of all that it has started, as far as it can be known."""
    return groups.used_seconds() if groups else processor_seconds(os.getpid())


def tree(pid):
    """The ids of a process and its descendants. Some may have just ended."""
    pids = [pid]
    for one in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                pids += map(int, (task / "children").read_text(encoding="utf-8").split())
        yield one


def processor_seconds(pid, alone=False):
    """Processor time of a process and its descendants, with those that have ended; alone: of the process."""
    ticks = 0
    for one in [pid] if alone else tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The fields after the name in parentheses: own time, and that of children that it has waited for.
            fields = pathlib.Path(f"/proc/{one}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            ticks += sum(map(int, fields[11 : 13 if alone else 15]))
    return ticks / os.sysconf("SC_CLK_TCK")
