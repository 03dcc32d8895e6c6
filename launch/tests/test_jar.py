"""What the Supplier's jar contains."""

import re
import shutil
import xml.etree.ElementTree
import zipfile

import places

POM = "{http://maven.apache.org/POM/4.0.0}"


def bundled():
    """The artifacts that the jar bundles: by the pom, and those within them."""
    dependencies = xml.etree.ElementTree.parse(places.ROOT / "spark-supplier" / "pom.xml").find(f"{POM}dependencies")
    named = {d.findtext(f"{POM}artifactId") for d in dependencies if d.find(f"{POM}scope") is None}
    with zipfile.ZipFile(places.JAR) as jar:
        within = {re.match(r"META-INF/maven/[^/]+/([^/]+)/pom.xml", name) for name in jar.namelist()}
    return {name for name in named | {match[1] for match in within if match} if not name.startswith("spark-supplier-")}


def test_each_bundled_artifact_is_in_the_notice_with_its_license():
    with zipfile.ZipFile(places.JAR) as jar:
        notice = jar.read("META-INF/NOTICE").decode()
        entries = re.split(r"\n\* ", notice)[1:]
        assert {"protobuf-java", "picocli", "lmdbjni-linux64", "hawtjni-runtime"} <= bundled()
        for artifact in bundled():
            assert any(re.search(rf"\([^)]*\b{artifact}[,)]", entry) for entry in entries), artifact
        for entry in entries:
            licenses = re.findall(r"META-INF/(?:LICENSE|licenses/\S+\.txt)", entry)
            assert licenses, entry
            assert all(len(jar.read(name)) > 1000 for name in licenses)
        assert "${" not in notice


def test_a_library_is_for_the_machine_that_its_folder_names():
    with zipfile.ZipFile(places.JAR) as jar:
        found = {machine: jar.read(name) for machine, name in places.LMDB_LIBRARIES.items() if name in jar.namelist()}
    assert "x86_64" in found
    # The build says so if it has no compiler for the other one.
    assert "aarch64" in found or not shutil.which("aarch64-linux-gnu-gcc")
    # e_machine of an ELF file.
    machines = {machine: int.from_bytes(library[18:20], "little") for machine, library in found.items()}
    assert machines == {machine: {"x86_64": 62, "aarch64": 183}[machine] for machine in found}


def test_the_jar_holds_the_product_alone():
    with zipfile.ZipFile(places.JAR) as jar:
        assert not [name for name in jar.namelist() if name.startswith("supply/bench/")]
