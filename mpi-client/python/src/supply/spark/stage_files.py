"""How stages of pipelines are saved that have Python objects: Spark's metadata, and the objects pickled beside it."""

from __future__ import annotations

import pickle
from typing import Any

from pyspark import cloudpickle
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter

from supply.errors import RunError

_FILE = "objects.pickle"
# Python and the JVM pass bytes as text: not all at once.
_CHUNK = 16 * 1024 * 1024


class ObjectsStage(MLWritable, MLReadable[Any]):
    """A stage whose class makes it of its _objects(), and that has params besides."""

    def _objects(self) -> dict[str, Any]:
        """The arguments of the class that JSON cannot hold, params also."""
        raise NotImplementedError

    def write(self) -> MLWriter:
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        return _Reader(cls)


class _Writer(MLWriter):
    def __init__(self, stage: Any) -> None:
        super().__init__()
        self._stage = stage

    def saveImpl(self, path: str) -> None:  # noqa: N802
        objects = self._stage._objects()
        content = _pickled(objects)
        params = {param.name: value for param, value in self._stage._paramMap.items() if param.name not in objects}
        DefaultParamsWriter.saveMetadata(self._stage, path, self.sc, paramMap=params)
        _write(self.sparkSession, f"{path}/{_FILE}", content)


class _Reader(MLReader[Any]):
    def __init__(self, stage_class: type[ObjectsStage]) -> None:
        super().__init__()
        self._class = stage_class

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, self.sc)
        stage: Any = self._class(**_unpickled(_read(self.sparkSession, f"{path}/{_FILE}")))
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage


def _pickled(objects: dict[str, Any]) -> bytes:
    """Each object for itself, to name the one that cannot be pickled."""
    pickles = {}
    for name, value in objects.items():
        try:
            pickles[name] = cloudpickle.dumps(value)
        except Exception as error:
            raise RunError(f"{name} cannot be saved, because it cannot be pickled: {error}") from error
    return pickle.dumps(pickles)


def _unpickled(content: bytes) -> dict[str, Any]:
    return {name: pickle.loads(value) for name, value in pickle.loads(content).items()}


def _open(spark: Any, path: str) -> tuple[Any, Any]:
    """The file system of a path, and the path in Hadoop's form."""
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    return place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), place


def _write(spark: Any, path: str, content: bytes) -> None:
    files, place = _open(spark, path)
    out = files.create(place)
    try:
        for begin in range(0, len(content), _CHUNK):
            out.write(bytearray(content[begin : begin + _CHUNK]))
    finally:
        out.close()


def _read(spark: Any, path: str) -> bytes:
    files, place = _open(spark, path)
    left = files.getFileStatus(place).getLen()
    read = spark._jvm.org.apache.commons.io.IOUtils.toByteArray
    content = bytearray()
    stream = files.open(place)
    try:
        while len(content) < left:
            content += read(stream, min(_CHUNK, left - len(content)))
    finally:
        stream.close()
    return bytes(content)
