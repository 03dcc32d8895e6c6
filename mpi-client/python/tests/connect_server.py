"""A server of Spark Connect in a process of its own, as on a cluster."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

_STARTS_SECONDS = 120
_ENDS_SECONDS = 30


class Server(NamedTuple):
    """remote: its URL."""

    remote: str
    process: subprocess.Popen[bytes]


@contextlib.contextmanager
def connect_server(master, jar, command=(), **settings):
    """jar: of the Supplier; None: the server has none. command: words in front of the server's, which start it
    elsewhere. settings: of Spark, with _ for each dot.
    """
    import pyspark

    home = pathlib.Path(pyspark.__file__).parent
    port = _free_port()
    words = {
        "spark.connect.grpc.binding.port": port, "spark.ui.enabled": "false", "spark.log.level": "ERROR",
        **({"spark.jars": jar} if jar else {}), **{name.replace("_", "."): value for name, value in settings.items()},
    }  # fmt: skip
    command = [*command, home / "bin" / "spark-submit", "--master", master, "--name", "connect"]
    command += [word for name, value in words.items() for word in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _await(server, port, log)
            yield Server(f"sc://127.0.0.1:{port}", server)
        finally:
            # Also what the command has started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(_ENDS_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
            # Else PySpark makes no session of Spark Classic in this process, nor in those that it starts.
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


def _await(server, port, log):
    end = time.monotonic() + _STARTS_SECONDS
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.1)
    log.seek(0)
    raise AssertionError(f"the server of Spark Connect has not started:\n{log.read().decode(errors='replace')}")


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
