"""A standalone Spark cluster: a master, and workers on loopback addresses of their own, each a process that can die."""

import os
import subprocess

import pyspark

from places import BUILD
from waiting import wait_until


class Standalone:
    def __init__(self, folder, workers):
        self._folder = folder
        self._processes = []
        master_log = self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.master = wait_until(lambda: self._word(master_log, "Starting Spark master at "))
        self.workers = []
        for number in range(workers):
            # An address each: to Spark they are two hosts.
            options = ("--host", f"127.0.0.{number + 2}", "--webui-port", "0", "--cores", "2", "--memory", "1g")
            log = self._start(f"worker-{number}", "worker.Worker", *options, "--work-dir", folder / f"work-{number}", self.master)
            wait_until(lambda: "Successfully registered with master" in log.read_text())
            self.workers.append(self._processes[-1])

    def _start(self, name, role, *arguments):
        home = os.path.dirname(pyspark.__file__)
        log = self._folder / f"{name}.log"
        with open(log, "w") as file:
            self._processes.append(subprocess.Popen(
                [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{role}", *map(str, arguments)],
                env={**os.environ, "SPARK_HOME": home, "SPARK_CONF_DIR": str(self._folder), "SPARK_DAEMON_MEMORY": "256m",
                     "SPARK_DAEMON_JAVA_OPTS": "-XX:-UsePerfData -XX:+UseSerialGC"},
                stdin=subprocess.DEVNULL, stdout=file, stderr=file))
        return log

    @staticmethod
    def _word(log, prefix):
        for line in log.read_text().splitlines():
            if prefix in line:
                return line.split(prefix)[1].split()[0]

    def stop(self):
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(timeout=30)
