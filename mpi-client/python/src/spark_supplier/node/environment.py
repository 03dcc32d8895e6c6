"""What the driver gives to nodes and ranks: files, versions, the path of modules, and their share of the cores."""

from __future__ import annotations

import base64
import os
import pickle
import platform
import site
import sys
import sysconfig
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import spark_supplier
from spark_supplier.errors import RunError
from spark_supplier.node.run_files import RunFiles

OMP_NUM_THREADS = "OMP_NUM_THREADS"


def plain_host(host: str) -> str:
    """A host of Spark's, as sockets take it: Spark writes an address of IPv6 in brackets."""
    return host.removeprefix("[").removesuffix("]")


PYTHON_PATH = "PYTHONPATH"

# What an importable PySpark has of itself, for Spark's workers. Python keeps no bytecode of a zip.
_PYSPARK_ZIP = "/pyspark/python/lib/pyspark.zip"


def path_entries() -> list[str]:
    """What Spark, addPyFile and the program have added to the path of this Python: the program's folder first.

    Neither the standard library nor installed packages are in it: a rank may have another Python, with its own.
    """
    return _added(map(os.path.abspath, sys.path))


def python_path(others: Sequence[str] = ()) -> str:
    """PYTHONPATH of a child: what was added to the path of this Python, and `others` that this node has.

    others: path_entries() of the driver.
    """
    found = [*path_entries(), *_added(other for other in others if os.path.exists(other))]
    return os.pathsep.join(dict.fromkeys(found))


def _added(entries: Iterable[str]) -> list[str]:
    own = {os.path.realpath(entry) for entry in _of_this_python()}
    own |= {os.path.realpath(entry + _PYSPARK_ZIP) for entry in sys.path}
    return [entry for entry in entries if os.path.realpath(entry) not in own]


def _of_this_python() -> list[str]:
    paths = sysconfig.get_paths()
    libraries = {paths["stdlib"], paths["platstdlib"]}
    archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    return [
        *libraries,
        *(os.path.join(library, "lib-dynload") for library in libraries),
        *(os.path.join(os.path.dirname(library), archive) for library in libraries),
        paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages(),
    ]  # fmt: skip


@dataclass
class Versions:
    """Of the process that makes it."""

    supply: str = field(default=spark_supplier.__version__)
    python: str = field(default_factory=platform.python_version)

    def check(self, host: str) -> None:
        """Refuses another version of this package or of Python than the driver's. host: of this process."""
        if spark_supplier.__version__ != self.supply:
            raise RunError(
                f"spark_supplier is {spark_supplier.__version__} on {host}, but {self.supply} on the driver: install "
                "the same version"
            )
        here = platform.python_version()
        if here.split(".")[:2] != self.python.split(".")[:2]:
            raise RunError(
                f"Python is {here} on {host}, but {self.python} on the driver: set PYSPARK_PYTHON to the same version"
            )


@dataclass
class NodeSpec:
    """ranks: the numbers of this node's ranks. environment: for them, with that of hub.connect().

    files: of the ranks. Each call has its own. python_path: of the driver. gpus: CUDA_VISIBLE_DEVICES for the ranks;
    None: as in the executor.
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


SPEC_VARIABLE = "SUPPLY_MPI_SPEC"


@dataclass
class MpiSpec:
    """Of all ranks of a run. They get it in the environment.

    files: of the ranks, as of NodeSpec; ranks that run supply-server have pairs in them. spark_hosts: of the executors,
    as Spark names them, with their addresses, which the driver has looked up. gpus: CUDA_VISIBLE_DEVICES on those with
    GPUs from Spark.
    """

    files: RunFiles
    spark_hosts: dict[str, list[str]]
    gpus: dict[str, str]
    versions: Versions = field(default_factory=Versions)

    def environment(self) -> dict[str, str]:
        # Linux takes 128 KiB for a variable: about 7,000 hosts.
        return {SPEC_VARIABLE: base64.b64encode(zlib.compress(pickle.dumps(self))).decode()}

    @staticmethod
    def of(environment: dict[str, str]) -> MpiSpec:
        spec = pickle.loads(zlib.decompress(base64.b64decode(environment[SPEC_VARIABLE])))
        assert isinstance(spec, MpiSpec)
        return spec
