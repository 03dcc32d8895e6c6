"""What a node process needs to know."""

from __future__ import annotations

from dataclasses import dataclass, field

from supply.ranks.run_files import RunFiles
from supply.ranks.versions import Versions


@dataclass
class NodeSpec:
    """ranks: the numbers of this node's ranks. environment: for them, with that of control.connect().

    python_path: of the driver. gpus: CUDA_VISIBLE_DEVICES for the ranks; None: as in the executor.
    """

    host: str
    ranks: list[int]
    world_size: int
    node_index: int
    files: RunFiles
    environment: dict[str, str]
    python_path: list[str]
    gpus: str | None
    versions: Versions = field(default_factory=Versions)
