"""The Spack package. `make release` writes the version and the checksum into a copy: docs/design/packaging.md."""

import os

from spack.package import *


class SparkSupplier(CMakePackage):
    """Supplies data from Apache Spark to MPI ranks on the same node, through shared memory, with one copy.

    The C library libsupply, its tools, the launchers, and the Supplier's jars for Spark 4.1 and 3.5. The Spark itself
    is that of SPARK_HOME. The Python package for ranks comes by pip.
    """

    homepage = "https://github.com/spark-supplier/spark-supplier"
    url = f"{homepage}/releases/download/v@VERSION@/spark_supplier-@VERSION@.tar.gz"

    license("Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    variant("tools", default=True, description="The supply-… tools, the launchers and the jars for Spark")
    variant("mpi", default=True, description="libsupply_exchange; with tools supply-server")
    variant("man", default=False, description="Man pages", when="+tools")
    variant(
        "linalg",
        default="none",
        values=("none", "openblas", "slepc"),
        multi=False,
        when="+tools+mpi",
        description="Routines of supply-server: by OpenBLAS; slepc adds the Lanczos methods",
    )

    requires("platform=linux", msg="spark-supplier needs Linux")
    requires(
        "target=x86_64:",
        "target=aarch64:",
        policy="one_of",
        msg="spark-supplier needs a processor of x86_64 or aarch64",
    )

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type=("build", "test"))
    depends_on("python@3.9:", type="build")
    depends_on("python@3.9:", type="run", when="+tools")
    depends_on("help2man", type="build", when="+man")
    depends_on("zlib-api", when="+tools")
    depends_on("jansson", when="+tools")
    depends_on("mpi", when="+mpi")
    depends_on("openblas", when="linalg=openblas")
    depends_on("openblas", when="linalg=slepc")
    depends_on("slepc", when="linalg=slepc")

    root_cmakelists_dir = "mpi-client"
    # For CC in the tests.
    test_requires_compiler = True

    def cmake_args(self):
        linalg = self.spec.variants["linalg"].value if "linalg" in self.spec.variants else "none"
        return [
            self.define_from_variant("SUPPLY_BUILD_TOOLS", "tools"),
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
            self.define("SUPPLY_BUILD_EXAMPLES", False),
            self.define("SUPPLY_BUILD_TESTS", False),
            self.define("SUPPLY_LINALG", linalg),
            self.define("SUPPLY_PYTHON", self.spec["python"].command.path),
            self.define("CMAKE_REQUIRE_FIND_PACKAGE_MPI", self.spec.satisfies("+mpi")),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", self.spec.satisfies("~mpi")),
        ]

    def expect(self, text, program, *arguments):
        """Runs a program. Its output must contain the text."""
        output = which(program, required=True)(*arguments, output=str.split, error=str.split)
        assert text in output, f"no '{text}' in the output of {program}: {output}"

    def compile_client(self, compiler, library, header, function):
        """A C program with flags by pkg-config. It must print the library's version."""
        with open("client.c", "w") as file:
            file.write(f"#include <stdio.h>\n#include <{header}>\n")
            file.write(f"int main(void) {{ return (void *){function} == NULL || puts(supply_version()) < 0; }}\n")
        pc_file = join_path(self.prefix.lib, "pkgconfig", "supply.pc")
        flags = which("pkg-config", required=True)("--cflags", "--libs", pc_file, output=str).split()
        which(compiler, required=True)("client.c", "-o", "client", *flags, library, f"-Wl,-rpath,{self.prefix.lib}")
        self.expect(str(self.version), os.path.abspath("client"))

    def test_client(self):
        """a C program compiles and runs"""
        self.compile_client(os.environ["CC"], "-lsupply", "supply.h", "supply_open")

    def test_mpi_client(self):
        """a C program with MPI compiles and runs"""
        if self.spec.satisfies("~mpi"):
            raise SkipTest("installed without the libraries that need MPI (~mpi)")
        self.compile_client(self.spec["mpi"].mpicc, "-lsupply_exchange", "supply_exchange.h", "supply_exchange_open")

    def test_tools(self):
        """the tools and the launchers start"""
        if self.spec.satisfies("~tools"):
            raise SkipTest("installed without tools (~tools)")
        for tool in ("supply-cat", "supply-clean", "supply-doctor", "supply-stat"):
            self.expect(str(self.version), self.prefix.bin.join(tool), "--version")
        self.expect("--ranks", self.prefix.bin.join("supply-run"), "--help")

    def test_linalg(self):
        """supply-server starts, and has its routines"""
        if not self.spec.satisfies("linalg=openblas") and not self.spec.satisfies("linalg=slepc"):
            raise SkipTest("installed without routines (linalg=none)")
        self.expect(str(self.version), self.prefix.bin.join("supply-server"), "--version")
        assert os.path.isfile(join_path(self.prefix.lib, "supply", "libsupply_linalg.so"))
