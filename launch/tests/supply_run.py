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
    """A process of supply-run, whose ranks write down where their config files lie."""

    def __init__(self, folder, *arguments, program=(SUPPLY_CAT,), script=LAUNCH / "supply-run", **environment):
        self.mark = Mark()
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.noted = folder / "mapped-files"
        self.output = folder / "output"
        self.output.mkdir()
        # Each rank has a file for its output: mpirun mixes what they print, in the middle of lines.
        note = f'echo "$SUPPLY_MAPPED_FILES" > {self.noted}; exec "$@" > {self.output}/${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}'
        ranks = ["--", "bash", "-c", note, "rank", *program] if program else []
        self.process = subprocess.Popen(
            [script, *map(str, arguments), *map(str, ranks)],
            env={**os.environ, "TMPDIR": str(self.temporary), self.mark.name: self.mark.value, **environment},
            stdin=subprocess.DEVNULL,
            # nohup lets it be ignored, and a shell can not trap what is ignored from the start.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def mapped_file(self):
        """That of rank 0, once the ranks have been started; nothing before."""
        if not self.noted.exists():
            return None
        config = pathlib.Path(self.noted.read_text().strip())
        # A rank that has just begun to write it has emptied it first.
        lines = config.read_text().splitlines() if config.is_file() else []
        return next((line.split()[0] for line in lines if line.startswith("/")), None)

    def wait_until_supplied(self):
        wait_until(lambda: (file := self.mapped_file()) and headers.read(file, "published"))

    def finish(self):
        """Waits for its end, and that nothing is left of it: the exit status."""
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
