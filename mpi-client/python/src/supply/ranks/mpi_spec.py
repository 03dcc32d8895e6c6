"""What a rank that mpirun starts needs to know."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field

from supply.ranks.run_files import RunFiles
from supply.ranks.versions import Versions

VARIABLE = "SUPPLY_MPI_SPEC"


@dataclass
class MpiSpec:
    """Of all ranks of a run. They get it in the environment.

    spark_hosts: of the executors, as Spark names them, with their addresses, which the driver has looked up. gpus:
    CUDA_VISIBLE_DEVICES on those with GPUs from Spark.
    """

    files: RunFiles
    spark_hosts: dict[str, list[str]]
    gpus: dict[str, str]
    versions: Versions = field(default_factory=Versions)

    def environment(self) -> dict[str, str]:
        return {VARIABLE: pickle.dumps(self).hex()}

    @staticmethod
    def of(environment: dict[str, str]) -> MpiSpec:
        spec = pickle.loads(bytes.fromhex(environment[VARIABLE]))
        assert isinstance(spec, MpiSpec)
        return spec
