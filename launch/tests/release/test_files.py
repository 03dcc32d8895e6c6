"""The checksums and the bill of materials of a release."""

import hashlib
import json
import re
import tarfile

import pytest

from installing import ROOT


def test_each_file_has_its_checksum(release):
    lines = (release / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    files = {path.name: path for path in release.iterdir() if path.is_file()}
    assert sums.keys() == files.keys() - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256(files[name].read_bytes()).hexdigest() == digest, name


def test_the_release_is_complete(release, version, library):
    names = [path.name for path in release.iterdir()]
    for pattern in (
        r"spark_supplier-V-cp\d+-(abi3|cp\d+)-manylinux.*_x86_64\.whl",
        r"spark_supplier-V-cp\d+-(abi3|cp\d+)-manylinux.*_aarch64\.whl",
        r"spark_supplier-V\.tar\.gz",
        r"spark-supplier-V-linux-x86_64\.tar\.gz",
        rf"libsupply{re.escape(library)}_V_amd64\.deb",
        r"libsupply-dev_V_amd64\.deb",
        r"supply-mpi_V_amd64\.deb",
        r"supply-tools_V_amd64\.deb",
        r"spark-supplier-V-maven\.tar\.gz",
        r"spark-supplier-V-spack\.tar\.gz",
        r"spark-supplier-V-conda\.tar\.gz",
        r"spark-supplier\.cdx\.json",
    ):
        expression = pattern.replace("V", re.escape(version))
        assert any(re.fullmatch(expression, name) for name in names), f"{expression} in {names}"


@pytest.mark.parametrize("folder", ["maven", "spack", "conda"])
def test_a_tarball_holds_its_folder(release, version, folder):
    with tarfile.open(release / f"spark-supplier-{version}-{folder}.tar.gz") as file:
        packed = {member.name: file.extractfile(member).read() for member in file if member.isfile()}
    assert packed == {
        str(path.relative_to(release)): path.read_bytes() for path in (release / folder).rglob("*") if path.is_file()
    }


def test_the_bill_of_materials_names_what_the_notices_name(release, version):
    bom = json.loads((release / "spark-supplier.cdx.json").read_text())
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    assert bom["metadata"]["component"]["version"] == version
    references = [component["bom-ref"] for component in bom["components"]]
    assert len(references) == len(set(references))
    components = {component["name"]: component for component in bom["components"]}
    assert {"lmdbjni", "protobuf-java", "picocli", "LMDB"} <= components.keys()
    assert all(components[name]["version"] for name in ("LMDB", "Jansson", "zlib", "nanobind"))
    for entry in re.findall(r"^\* ([^(\n]+?) \(", (ROOT / "mpi-client" / "NOTICE").read_text(), re.MULTILINE):
        assert components[entry]["licenses"], entry
    sums = dict(reversed(line.split("  ", 1)) for line in (release / "SHA256SUMS").read_text().splitlines())
    for component in bom["components"]:
        if component["type"] == "file":
            assert component["hashes"] == [{"alg": "SHA-256", "content": sums[component["name"]]}]
