"""Images of this machine's files, as OCI archives: no registry and no image builder is needed."""

import functools
import glob
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

from . import parts
from .commands import ClusterError

# localhost: a node never asks a registry for them.
PAUSE = "localhost/supply-pause:dev"
EXECUTOR = "localhost/supply-executor:dev"
RANKS = "localhost/supply-ranks:dev"
# As in Spark's own images.
_USER = 185
_LAYERS = parts.BUILD / "layers"
_SPARK = "/opt/spark"
_PYTHON = f"python3.{sys.version_info[1]}"

_COMMANDS = [
    *(
        "bash",
        "cat",
        "chmod",
        "cp",
        "cut",
        "date",
        "dd",
        "df",
        "dirname",
        "echo",
        "env",
        "expr",
        "find",
        "grep",
        "head",
    ),
    *("basename", "id", "kill", "ls", "mkdir", "mv", "ps", "readlink", "rm", "sed", "sh", "sleep", "sort", "stat"),
    *("tail", "tee", "test", "tr", "uname", "wc"),
]
_MERGED = ("bin", "sbin", "lib", "lib64")
_LEFT_OUT = (
    *("__pycache__", "/jmods/", "/lib/ct.sym", "/legal/", "/src.zip", "/man/", "/test/", "/config-3", "/connect-repl/"),
    *("/torch/include/", "/torch/bin/test_"),
)


class Layer:
    """Files of an image, by their path in it."""

    def __init__(self, name):
        self._name = name
        self._files = {}
        self._texts = {}
        self._folders = {}

    def add(self, source, place=None):
        """A file, or all of a folder. Links stay links; files that they name are added, too."""
        source = os.fspath(source)
        place = _usual(os.fspath(place or source))
        self._put(source, place)
        if os.path.isdir(source) and not os.path.islink(source):
            for folder, folders, names in os.walk(source):
                links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
                for name in [*names, *links]:
                    found = os.path.join(folder, name)
                    self._put(found, os.path.normpath(os.path.join(place, os.path.relpath(found, source))))

    def text(self, place, content, mode=0o644):
        self._texts[place] = (content, mode)

    def folder(self, place, mode=0o755):
        self._folders[place] = mode

    def _put(self, source, place):
        if place in self._files or any(part in place for part in _LEFT_OUT):
            return
        self._files[place] = source
        if os.path.islink(source) and os.path.isfile(source):
            there = os.readlink(source)
            self._put(os.path.join(os.path.dirname(source), there), _joined(os.path.dirname(place), there))

    def _add_libraries(self):
        """The shared libraries that the programs and libraries need."""
        programs = [file for file in self._files.values() if _is_program(file)]
        for first in range(0, len(programs), 100):
            found = subprocess.run(["ldd", *programs[first : first + 100]], capture_output=True, text=True, check=False)
            for line in found.stdout.splitlines():
                words = line.split()
                path = words[2] if "=>" in words and len(words) > 2 else words[0] if words else ""
                if path.startswith("/") and not path.endswith(":"):
                    self._put(os.path.realpath(path), _usual(os.path.normpath(path)))

    def _key(self):
        """Changes if the layer would."""
        made = hashlib.sha256(repr((sorted(self._texts.items()), sorted(self._folders.items()))).encode())
        for place, source in sorted(self._files.items()):
            entry = os.lstat(source)
            made.update(f"{place} {source} {entry.st_size} {entry.st_mtime_ns}\n".encode())
        made.update(pathlib.Path(__file__).read_bytes())
        return made.hexdigest()

    @functools.cached_property
    def made(self):
        """The path and the SHA-256 of the layer's tar file. It is made again only if a file has changed."""
        _LAYERS.mkdir(parents=True, exist_ok=True)
        tar, about = _LAYERS / f"{self._name}.tar", _LAYERS / f"{self._name}.json"
        key = self._key()
        if tar.exists() and about.exists():
            known = json.loads(about.read_text(encoding="utf-8"))
            if known["key"] == key:
                return tar, known["sha256"]
        about.unlink(missing_ok=True)
        self._add_libraries()
        self._write(tar)
        with tar.open("rb") as file:
            digest = _digest(file)
        about.write_text(json.dumps({"key": key, "sha256": digest}), encoding="utf-8")
        return tar, digest

    def _write(self, path):
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
            for name in _MERGED:
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
                tar.addfile(entry)
            for place, mode in sorted(self._folders.items()):
                entry = tarfile.TarInfo(place.lstrip("/"))
                entry.type, entry.mode = tarfile.DIRTYPE, mode
                tar.addfile(entry)
            for place, (content, mode) in sorted(self._texts.items()):
                _add_text(tar, place.lstrip("/"), content, mode)
            for place, source in sorted(self._files.items()):
                tar.inodes.clear()  # no hard links between the image's files
                entry = tar.gettarinfo(source, place.lstrip("/"))
                if entry is None or entry.isdir():
                    continue
                entry.uid = entry.gid = 0
                if entry.isreg():
                    with open(source, "rb") as file:
                        tar.addfile(entry, file)
                else:
                    tar.addfile(entry)


def make_all(say):
    """The images of every node."""
    system, spark, package = _system_layer(), _spark_layer(), _package_layer()
    say("making images of this machine's files")
    pause = Layer("pause")
    pause.add("/usr/bin/sleep")
    settings = {"User": str(_USER), "WorkingDir": f"{_SPARK}/work-dir", "Entrypoint": ["/opt/entrypoint"],
                "Env": ["PATH=/usr/bin:/usr/sbin", f"JAVA_HOME={_java_home()}", f"SPARK_HOME={_SPARK}",
                        "PYSPARK_PYTHON=/usr/bin/python3"]}  # fmt: skip
    return [
        Archive(PAUSE, [pause], {"Entrypoint": ["/usr/bin/sleep", "infinity"]}),
        Archive(EXECUTOR, [system, spark, package], settings),
        Archive(RANKS, [system, package], {"User": "1000", "Env": ["PATH=/usr/bin:/usr/sbin"]}),
    ]


def _spark_layer():
    """A Java and Spark."""
    spark = _only(parts.ROOT / "build/venv/lib/python3*/site-packages/pyspark")
    layer = Layer("spark")
    layer.add(_java_home())
    if os.path.isdir("/etc/java-17-openjdk"):
        layer.add("/etc/java-17-openjdk")
    for name in ("jars", "bin", "python"):
        layer.add(spark / name, f"{_SPARK}/{name}")
    layer.folder(f"{_SPARK}/work-dir", 0o1777)
    return layer


def _system_layer():
    """Debian's Python and PyTorch: what changes seldom."""
    layer = Layer("system")
    for command in _COMMANDS:
        if os.path.exists(f"/usr/bin/{command}"):
            layer.add(f"/usr/bin/{command}")
    layer.add("/usr/bin/python3")
    layer.add(f"/usr/lib/{_PYTHON}")
    for name in ("numpy", "torch", "functorch", "torchgen", "typing_extensions.py", "yaml"):
        if os.path.exists(f"/usr/lib/python3/dist-packages/{name}"):
            layer.add(f"/usr/lib/python3/dist-packages/{name}")
    for pattern in ("libc.so*", "libnss_*.so*", "libresolv.so*"):
        for library in glob.glob(f"/usr/lib/x86_64-linux-gnu/{pattern}"):
            layer.add(library)
    layer.text("/etc/passwd", f"root:x:0:0:root:/root:/bin/bash\nspark:x:{_USER}:0:spark:/tmp:/bin/bash\n")
    layer.text("/etc/group", "root:x:0:\n")
    layer.text("/etc/nsswitch.conf", "hosts: files dns\n")
    for place in ("/proc", "/sys", "/dev", "/root", "/etc"):
        layer.folder(place)
    for place in ("/tmp", "/var/tmp"):
        layer.folder(place, 0o1777)
    return layer


def _package_layer():
    """The Python package, as make has installed it."""
    site = _only(parts.ROOT / "build/wheel-venv/lib/python3*/site-packages")
    layer = Layer("package")
    # tqdm is for scripts that import spark_supplier, pandas and pyarrow for TorchModel.transform.
    names = ["spark_supplier", "spark_supplier-*", "pandas*", "pyarrow*", "pytz*", "dateutil", "tzdata*", "tqdm*"]
    for found in sorted(found for name in names for found in site.glob(name)):
        layer.add(found, f"/usr/local/lib/{_PYTHON}/dist-packages/{found.name}")
    layer.text("/opt/entrypoint", pathlib.Path(__file__).with_name("entrypoint").read_text(encoding="utf-8"), 0o755)
    return layer


class Archive:
    """An image with these layers. settings: its entrypoint, user and environment."""

    def __init__(self, name, layers, settings):
        self.name = name
        self._layers = [layer.made for layer in layers]
        config = json.dumps({
            "architecture": "amd64", "os": "linux", "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for _, digest in self._layers]},
        })  # fmt: skip
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _about("image.config", config),
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{digest}",
                        "size": tar.stat().st_size} for tar, digest in self._layers],
        })  # fmt: skip
        names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
        self._index = json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{**_about("image.manifest", manifest), "annotations": names}],
        })  # fmt: skip
        self._blobs = [config, manifest]
        self.digest = f"sha256:{_sha256(manifest)}"

    def write(self, stream):
        with tarfile.open(fileobj=stream, mode="w|", bufsize=1 << 20) as tar:
            _add_text(tar, "oci-layout", '{"imageLayoutVersion":"1.0.0"}')
            _add_text(tar, "index.json", self._index)
            for blob in self._blobs:
                _add_text(tar, f"blobs/sha256/{_sha256(blob)}", blob)
            for layer, digest in self._layers:
                tar.add(layer, f"blobs/sha256/{digest}")


def _about(kind, blob):
    kind = f"application/vnd.oci.{kind}.v1+json"
    return {"mediaType": kind, "digest": f"sha256:{_sha256(blob)}", "size": len(blob)}


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def _add_text(tar, name, content, mode=0o644):
    entry = tarfile.TarInfo(name)
    data = content.encode()
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))


def _digest(file):
    made = hashlib.sha256()
    while chunk := file.read(1 << 20):
        made.update(chunk)
    return made.hexdigest()


def _usual(path):
    """Debian's /bin is a link to /usr/bin."""
    first = path.split("/")[1]
    return f"/usr{path}" if first in _MERGED else path


def _joined(folder, path):
    return _usual(os.path.normpath(os.path.join(folder, path)))


def _is_program(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _only(pattern):
    found = glob.glob(os.fspath(pattern))
    if not found:
        raise ClusterError(f"there is no {pattern}: make build/wheel-venv/.ready makes it")
    return pathlib.Path(found[0])


def _java_home():
    java = os.path.join(os.environ["JAVA_HOME"], "bin/java") if os.environ.get("JAVA_HOME") else shutil.which("java")
    if not java or not os.path.exists(java):
        raise ClusterError("no Java found: install one (make packages), or set JAVA_HOME")
    return os.path.dirname(os.path.dirname(os.path.realpath(java)))
