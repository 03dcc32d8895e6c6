"""A program that trains with Supplier.run, for test_supplier_deaths: `supplier_program.py MASTER FOLDER LAUNCHER`."""

import sys

from spark_supplier import Mpirun, Rows, Supplier

from supplier_session import made_session


def train(data):
    import time

    for step, _ in enumerate(data):
        if step == 0:
            print("trains")
        # Longer than any test.
        time.sleep(1)


def main():
    with made_session(sys.argv[1]) as spark:
        try:
            supplier = Supplier(ranks=2, folder=sys.argv[2], launcher=Mpirun() if sys.argv[3] == "mpirun" else "torch")
            supplier.run(train, Rows(spark.range(0, 100000, 1, 4), columns=["id"], batch_size=1))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        except Exception as error:
            print(f"failed: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
