"""The config files of a run, and the files that its pairs leave."""

import pathlib
import subprocess

from places import LAUNCH, PROGRAMS


class Pairs:
    """Config files for pairs in a folder of their own."""

    def __init__(self, folder, count=1, ring=None, block=None, group=None):
        self.folder = folder
        self.count = count
        self.mapped_files = folder / "mapped-files.conf"
        self.named_pipes = folder / "named-pipes.conf"
        words = [f"--{name}={word}" for name, word in (("ring", ring), ("block", block), ("group", group)) if word]
        subprocess.run([LAUNCH / "make-configs", *words, str(count), folder], check=True)

    def options(self):
        """The options that name the config files, for the Supplier, supply-cat and supply-clean."""
        return ["--mapped-files", str(self.mapped_files), "--named-pipes", str(self.named_pipes)]

    def mapped_file(self, local_rank):
        return self.folder / f"pair-{local_rank}.mapped"

    def clean(self):
        """Removes the files of dead ranks. Returns their names."""
        done = subprocess.run([PROGRAMS / "supply-clean", *self.options()], check=True, capture_output=True, text=True)
        return sorted(pathlib.Path(line).name for line in done.stdout.splitlines())

    def left_behind(self):
        return sorted(file.name for file in self.folder.iterdir() if file.suffix != ".conf")
