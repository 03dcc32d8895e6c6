"""The config files of a run, and what the pairs leave behind."""

import subprocess

from places import LAUNCH


class Pairs:
    """Config files for pairs in a folder of their own."""

    def __init__(self, folder, count=1, ring=None, block=None):
        self.folder = folder
        self.mapped_files = folder / "mapped-files.conf"
        self.named_pipes = folder / "named-pipes.conf"
        sizes = [f"--{name}={size}" for name, size in (("ring", ring), ("block", block)) if size]
        subprocess.run([LAUNCH / "make-configs", *sizes, str(count), folder], check=True)

    def options(self):
        """For the Supplier, supply-cat and supply-clean alike."""
        return ["--mapped-files", str(self.mapped_files), "--named-pipes", str(self.named_pipes)]

    def left_behind(self):
        return sorted(file.name for file in self.folder.iterdir() if file.suffix != ".conf")
