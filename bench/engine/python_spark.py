"""A PySpark program of bench/py: a process of its own with a Spark of its own that does one round a line of its stdin."""

from engine import paths
from engine.spark_process import SparkProcess


class PythonSpark(SparkProcess):
    def __init__(self, program, *arguments, python=paths.VENV_PYTHON, environment=None):
        """The program is given the arguments behind a folder for Spark's files."""
        super().__init__(program)
        command = [python, paths.ROOT / "bench" / "py" / program, self.folder, *map(str, arguments)]
        self.start(
            command, {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(paths.VENV_PYTHON), **(environment or {})}
        )

    def round(self, **what):
        self.send(what)
        return self.answer()
