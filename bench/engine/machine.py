"""What a figure was measured on."""

import os
import pathlib
import platform
import re
import subprocess


def _first(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else None


def describe():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        processor = _first(r"^model name\s*: (.*)$", file.read())
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(_first(r"^MemTotal:\s*(\d+) kB", file.read())) << 10
    caches = subprocess.run(
        ["lscpu"], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
    ).stdout
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "last_level_cache": _first(r"^L3 cache:\s*(.*)$", caches),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
    }


def resident_memory(pid):
    """Bytes of memory that a living process has resident; pages that it shares are counted, too."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(_first(r"^VmRSS:\s*(\d+) kB", file.read())) << 10


def peak_memory(pid):
    """Bytes of memory that a living process has had resident at most; pages that it shares are counted, too."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(_first(r"^VmHWM:\s*(\d+) kB", file.read())) << 10


def forget_peak_memory(pid):
    """From now on peak_memory() counts anew; returns what is resident now."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")
    return peak_memory(pid)


def _of_each(measure, pid):
    """By process, over this one and all that it has started, and these; without those that have just ended."""
    found, pids, program = {}, [pid], os.readlink(f"/proc/{pid}/exe")
    for one in pids:
        try:
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                pids += map(int, (task / "children").read_text(encoding="utf-8").split())
            # Between its fork and its exec a JVM's child has the JVM's own memory.
            if one == pid or os.readlink(f"/proc/{one}/exe") != program:
                found[one] = measure(one)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def forget_peak_memory_of_all(pid):
    """forget_peak_memory() of a process and its descendants: what growth_of_all() takes."""
    return _of_each(forget_peak_memory, pid)


def growth_of_all(pid, before):
    """How far they have grown together since then at most, new ones included."""
    return sum(peak - before.get(one, 0) for one, peak in _of_each(peak_memory, pid).items())
