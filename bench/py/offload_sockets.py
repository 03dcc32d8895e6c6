"""The way of Alchemist to send a matrix: rows over sockets, to receivers that store them."""

import json
import socket
import struct
import subprocess

from pyspark.sql import functions

END = 0xFFFFFFFFFFFFFFFF
END_SECONDS = 60


class RowReceivers:
    """A receiver for each rank (bench/c/row_receiver.c). program: its path."""

    def __init__(self, spark, program, ranks):
        self._spark, self._rounds, self._sent = spark, 0, None
        self._processes = []
        try:
            for _ in range(ranks):
                self._processes.append(subprocess.Popen([program], stdout=subprocess.PIPE, text=True))
            self._ports = [json.loads(process.stdout.readline())["port"] for process in self._processes]
        except BaseException:
            self.close()
            raise

    def send(self, frame):
        """Sends `features`. Returns the number of rows when all of them are stored."""
        self._rounds += 1
        self._sent = frame.select("features")
        ports = self._spark.sparkContext._gateway.new_array(self._spark._jvm.int, len(self._ports))
        for place, port in enumerate(self._ports):
            ports[place] = port
        return self._spark._jvm.supply.bench.RowSockets.send(self._sent._jdf, ports, self._rounds)

    def check(self):
        """Ends the receivers. Returns what is wrong with the matrix that they have."""
        rows, total = self._sent.agg(
            functions.count("*"), functions.sum(functions.expr("aggregate(features, 0D, (a, b) -> a + b)"))
        ).first()
        for port in self._ports:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(struct.pack("<QQ", END, 0))
        stored = [json.loads(process.communicate(timeout=END_SECONDS)[0]) for process in self._processes]
        received = sum(one["rows"] for one in stored), sum(one["sum"] for one in stored)
        # The order of a sum changes its last digits.
        if received[0] == rows and abs(received[1] - total) < 1e-6 * rows:
            return []
        return [f"the receivers have {received[0]} rows with the sum {received[1]}, the source {rows} with {total}"]

    def close(self):
        for process in self._processes:
            process.kill()
            process.wait()
            process.stdout.close()
