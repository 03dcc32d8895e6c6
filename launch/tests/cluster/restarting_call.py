"""A program of PySpark on YARN whose ranks start again: `restarting_call.py JAR DRIVER FOLDER [FAULT...]`.

DRIVER: this host, as the nodes name it. FOLDER: of the checkpoints. FAULT, one for each attempt: `kill`: a rank is
killed; `save`: the ranks save again and again, until something happens to them. Without a FAULT the call begins from
the newest checkpoint there.
"""

import collections
import json
import sys

from spark_supplier import Rows, Supplier

from one_call import session

ROWS, EPOCHS, BATCH = 960, 2, 64
# Steps from one fault to the next, and from one checkpoint to the next.
STEPS, EVERY = 8, 5
LIMITS = {
    # An executor that says nothing is lost soon.
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "2s",
    # A node has space for one.
    "spark.executor.memoryOverhead": "4500m",
    "spark.hadoop.dfs.replication": "2",
    "spark.hadoop.dfs.client.socket-timeout": "5000",
    # The first job waits for both.
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.log.level": "ERROR",
}


def train(data, faults):
    """The hosts of the ranks, and all rows that ranks have seen."""
    import os
    import signal
    import socket

    from torch import distributed

    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    found, step = data.saved or ([], 0)
    if ranks != len(data.saved_ranks):
        # Those of other ranks are with the first one.
        found = [row for then in data.saved_ranks for row in data.saved_of(then)[0]] if rank == 0 else []
    for epoch in data.epochs():
        for batch in epoch:
            found += [(epoch.number, row) for row in batch["id"].tolist()]
            step += 1
            distributed.barrier()
            if step == STEPS * (data.restarts + 1) and data.restarts < len(faults):
                if faults[data.restarts] == "kill" and rank == ranks - 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                while faults[data.restarts] == "save":
                    data.save((found, step))
                    distributed.barrier()
                    print("saved", flush=True)
            if step % EVERY == 0:
                data.save((found, step))
    shares = [None] * ranks
    distributed.all_gather_object(shares, (socket.gethostname(), found))
    return [host for host, _ in shares], [row for _, rows in shares for row in rows], data.restarts


def main():
    jar, driver, folder, *faults = sys.argv[1:]
    spark = session(jar, driver, **LIMITS)
    print("application", spark.sparkContext.applicationId, flush=True)
    spark.range(1).count()
    supplier = Supplier(4, min_ranks=2, restarts=3, checkpoints=folder, start_timeout=45)
    given = Rows(
        spark.range(0, ROWS, 1, 8), columns=["id"], batch_size=BATCH, epochs=EPOCHS, order="global", uneven="keep"
    )
    hosts, rows, restarts = supplier.run(train, given, faults, resume=not faults)
    wanted = collections.Counter((epoch, row) for epoch in range(EPOCHS) for row in range(ROWS))
    print(json.dumps({"hosts": sorted(hosts), "once": collections.Counter(rows) == wanted, "restarts": restarts}))
    spark.stop()


if __name__ == "__main__":
    main()
