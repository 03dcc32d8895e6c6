"""A whole run by launch/supply-run."""

import os
import pathlib
import signal
import subprocess

import headers
from places import LAUNCH, SUPPLY_CAT
from processes import Mark
from ranks import END_OF_PATIENCE
from waiting import wait_until


class SupplyRun:
    """A process of supply-run, whose ranks write the path of their config file into a file."""

    def __init__(self, folder, *arguments, program=(SUPPLY_CAT,), script=LAUNCH / "supply-run", **environment):
        self.mark = Mark()
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.noted = folder / "mapped-files"
        self.output = folder / "output"
        self.output.mkdir()
        # Each rank has a file for its output: mpirun mixes their output, even within lines.
        output = f"{self.output}/${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}"
        note = f'echo "$SUPPLY_MAPPED_FILES" > {self.noted}; exec "$@" > {output}'
        ranks = ["--", "bash", "-c", note, "rank", *program] if program else []
        self.process = subprocess.Popen(
            [script, *map(str, arguments), *map(str, ranks)],
            env={**os.environ, "TMPDIR": str(self.temporary), self.mark.name: self.mark.value, **environment},
            stdin=subprocess.DEVNULL,
            # Under nohup it is ignored, and supply-run leaves an ignored signal ignored.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def mapped_file(self):
        """The mapped file of rank 0, or None before the ranks have started."""
        if not self.noted.exists():
            return None
        config = pathlib.Path(self.noted.read_text().strip())
        # A rank that writes the file empties it first.
        lines = config.read_text().splitlines() if config.is_file() else []
        return next((line.split()[0] for line in lines if line.startswith("/")), None)

    def wait_until_supplied(self):
        wait_until(lambda: (file := self.mapped_file()) and headers.read(file, "published"))

    def process_of(self, words):
        """The process of the run whose command line holds the words."""
        lines = {pid: pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in self.mark.processes()}
        [found] = [pid for pid, line in lines.items() if words.encode() in line]
        return found

    def finish(self):
        """Waits for the end, and checks that nothing of the run is left. Returns the exit status."""
        try:
            out, error = self.process.communicate(timeout=2 * END_OF_PATIENCE)
        finally:
            left = self.mark.processes()
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            self.process.communicate()
        assert out == ""
        self.lines = [line for file in self.output.iterdir() for line in file.read_text().splitlines()]
        self.errors = error.splitlines()
        assert left == []
        assert list(self.temporary.iterdir()) == []
        return self.process.returncode
