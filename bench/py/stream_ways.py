"""Streams of blocks by Arrow Flight and gRPC, for bench/feeders. The arguments after the way are those of bench-tcp."""

import concurrent.futures
import json
import mmap
import sys
import threading
import time

import grpc
import numpy
import pyarrow
from pyarrow import flight

PAGE = 4096
METHOD = "/bench/put"
ROWS = pyarrow.binary(PAGE)
UNLIMITED = [("grpc.max_receive_message_length", -1)]


def receive(way, address, total, passes):
    """Reads a word of each page, and prints when each pass over the data is over."""
    over = threading.Event()

    def take(blocks):
        for _ in range(passes):
            got = tally = 0
            while got < total:
                words = numpy.frombuffer(next(blocks), numpy.uint64)
                got += words.nbytes
                tally += int(words[:: PAGE // 8].sum())
            print(json.dumps({"at": time.monotonic_ns(), "bytes": got, "sum": tally % (1 << 64)}), flush=True)
        over.set()

    class FlightServer(flight.FlightServerBase):
        def do_put(self, context, descriptor, reader, writer):
            take(chunk.data.column(0).buffers()[1] for chunk in reader)

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.stream_unary_rpc_method_handler(lambda blocks, context: take(blocks) or b"")

    if way == "flight":
        server = FlightServer(f"grpc://{address}")
    else:
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(1), [Handler()], options=UNLIMITED)
        server.add_insecure_port(address)
        server.start()
    print(json.dumps({"listens": True}), flush=True)
    over.wait()
    if way == "flight":
        server.shutdown()
    else:
        server.stop(grace=5).wait()


def send_flight(address, blocks):
    schema = pyarrow.schema([pyarrow.field("data", ROWS, nullable=False)])
    with flight.connect(f"grpc://{address}") as client:
        writer, _ = client.do_put(flight.FlightDescriptor.for_path("bench"), schema)
        with writer:
            for block in blocks:
                rows = pyarrow.Array.from_buffers(ROWS, len(block) // PAGE, [None, pyarrow.py_buffer(block)])
                writer.write_batch(pyarrow.record_batch([rows], schema=schema))


def send_grpc(address, blocks):
    with grpc.insecure_channel(address) as channel:
        channel.stream_unary(METHOD)(bytes(block) for block in blocks)


def main():
    way, role, host, port, *sizes = sys.argv[1:8]
    block, total, passes = map(int, sizes)
    if role == "receive":
        receive(way, f"{host}:{port}", total, passes)
        return
    with open(sys.argv[8], "rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), total, access=mmap.ACCESS_READ))
    send = send_flight if way == "flight" else send_grpc
    send(f"{host}:{port}", (mapped[at : at + block] for _ in range(passes) for at in range(0, total, block)))


if __name__ == "__main__":
    main()
