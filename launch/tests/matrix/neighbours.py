"""What the product meets on other machines. Versions are the newest that could be had."""

from dataclasses import dataclass

# By the names of the tests.
CHECKS = ("dataframe", "one_call", "lmdb")
SPARK = "4.1.4"


@dataclass(frozen=True)
class Neighbour:
    """
    One row. What it does not name is this machine's: its Python, its mpirun, its system.

    packages: what pip installs besides the wheel. commands: variables with the commands of an MPI. suite: of a Debian,
    whose packages bring everything. needs: other Debian packages of this suite.
    """

    name: str
    checks: tuple[str, ...]
    spark: str = SPARK
    python: str = ""
    packages: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    suite: str = ""
    needs: tuple[str, ...] = ()

    def __str__(self):
        return self.name


SPARKS = [Neighbour(f"Spark {version}", CHECKS, version) for version in ("3.5.9", "4.0.5", SPARK, "4.2.1", "4.3.0")]
# The PyTorch of the package index is 3 GB with its CUDA, so these have none. Supplier.run needs it.
PYTHONS = [
    Neighbour(f"Python {version}", ("dataframe", "lmdb"), python=version)
    for version in ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
]
MPIS = [
    *(
        Neighbour(f"{name} {version}", ("one_call", "lmdb"), packages=f"mpi4py==4.1.2 {package}=={version}")
        for name, package, version in (
            ("Open MPI", "openmpi", "4.1.8"),
            ("Open MPI", "openmpi", "5.0.11"),
            ("MPICH", "mpich", "4.3.2"),
            ("MPICH", "mpich", "5.0.2"),
        )
    ),
    Neighbour("MPICH of Debian", ("lmdb",), commands=(("MPIRUN", "mpiexec.mpich"), ("MPICC", "mpicc.mpich"))),
]
_OF_PYTHON = ("python3-venv", "python3-numpy", "python3-torch")
SYSTEMS = [
    # Its Python is 3.9, so it gets no wheel. Its CMake is too old, so it gets that of the package index.
    Neighbour(
        "Debian 11",
        ("lmdb",),
        suite="bullseye",
        needs=("openjdk-17-jre-headless", "make", "zlib1g-dev", "libjansson-dev"),
    ),
    Neighbour("Debian 12", CHECKS, suite="bookworm", needs=("openjdk-17-jre-headless", *_OF_PYTHON)),
    Neighbour("Debian 13", CHECKS, suite="trixie", needs=("openjdk-21-jre-headless", *_OF_PYTHON)),
]
NEIGHBOURS = [*SPARKS, *PYTHONS, *MPIS, *SYSTEMS]
