"""The config files of one pair."""

from layout import get


class PairFiles:
    """The config files of one pair, and the paths in them."""

    def __init__(self, folder, ring="64KiB", block="16KiB"):
        self.folder = folder
        self.paths = [folder / name for name in ("pair.mapped", "pair.request", "pair.notification")]
        (folder / "mapped-files.conf").write_text(f"{self.paths[0]} ring={ring} block={block}\n")
        (folder / "named-pipes.conf").write_text(f"{self.paths[1]} {self.paths[2]}\n")

    def is_open(self):
        """Whether a rank has opened the pair."""
        return self.paths[0].exists() and get(self.paths[0].read_bytes(), "mapped_file_header", "version") != 0

    def remaining(self):
        """The files of the pair that exist."""
        return [path.name for path in self.paths if path.exists()]
