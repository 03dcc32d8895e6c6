"""A standalone Spark cluster: a master, and workers with their own loopback addresses. A test can kill each of them."""

import os
import subprocess

import pyspark

from waiting import wait_until


class Standalone:
    def __init__(self, folder, workers, before=(), cores=2):
        """before: words in front of the command of each process, such as a program that changes the user."""
        self._folder = folder
        self._before = before
        self._cores = str(cores)
        self._processes = []
        self.workers = []
        try:
            self._start_all(workers)
        except BaseException:
            self.stop()
            raise

    def _start_all(self, workers):
        master_log = self._start("127.0.0.1", "master", "master.Master", "--port", "0")
        self.master = wait_until(lambda: self._word(master_log, "Starting Spark master at "))
        for number in range(workers):
            # With an address each, Spark takes them for two hosts.
            work = self._folder / f"work-{number}"
            options = ("--cores", self._cores, "--memory", "1g", "--work-dir", work, self.master)
            log = self._start(f"127.0.0.{number + 2}", f"worker-{number}", "worker.Worker", *options)
            wait_until(lambda: "Successfully registered with master" in log.read_text())
            self.workers.append(self._processes[-1])

    def _start(self, address, name, role, *arguments):
        home = os.path.dirname(pyspark.__file__)
        words = ["--host", address, "--webui-port", "0", *arguments]
        log = self._folder / f"{name}.log"
        with open(log, "w") as file:
            self._processes.append(
                subprocess.Popen(
                    [*self._before, f"{home}/bin/spark-class", f"org.apache.spark.deploy.{role}", *map(str, words)],
                    env={
                        **os.environ,
                        "SPARK_HOME": home,
                        "SPARK_CONF_DIR": str(self._folder),
                        "SPARK_LOCAL_IP": address,
                        "SPARK_DAEMON_MEMORY": "256m",
                        "SPARK_DAEMON_JAVA_OPTS": "-XX:-UsePerfData -XX:+UseSerialGC -Dspark.master.rest.enabled=false",
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                )
            )
        return log

    @staticmethod
    def _word(log, prefix):
        for line in log.read_text().splitlines():
            if prefix in line:
                return line.split(prefix)[1].split()[0]
        return None

    def stop(self):
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(timeout=30)
