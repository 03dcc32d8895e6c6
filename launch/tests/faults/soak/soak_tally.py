"""What the soak counts."""

from tally import Tally


class SoakTally(Tally):
    """failed: runs with a failed check. left: files and processes that runs have left. growing: resources that grow."""

    def __init__(self):
        self.minutes = self.runs = self.failed = self.kills = self.suspensions = 0
        super().__init__()
        self.left = self.growing = 0

    def is_good(self):
        bad = self.failed + self.lost + self.duplicated + self.stuck + self.left + self.growing
        return bool(self.elements) and not bad

    def since(self, before):
        """What was counted since `before`, a copy of vars()."""
        return {name: value - before[name] for name, value in vars(self).items()}
