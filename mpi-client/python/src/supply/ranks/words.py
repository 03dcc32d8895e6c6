"""Messages of the Supplier and of libsupply in the words of Supplier.run: they name options of the launchers."""

from __future__ import annotations

import re

# Options of Supplier and of run, with the names that the launchers have for them.
_OPTIONS = {
    name.replace("_", "-"): name
    for name in (
        "block_elements", "epochs", "exchange_fraction", "keep", "ranks", "resident", "resident_folder",
        "resident_quota", "seed", "shuffle", "shuffle_buffer", "uneven",
    )
}  # fmt: skip
_PHRASES = (
    # The Supplier's ring= and block= become those of the config files.
    (r" in mapped-files\.conf(?: \((?:[^()]|\([^()]*\))*\))?", " of the Supplier"),
    (r" \(--(?:ring|block|group)\)", ""),
    (r"--timeout(?: or --rank-timeout)?\b", "start_timeout"),
    (r"\(--in-place, inPlace\)", "(inPlace)"),
    (r"--in-place\b", "inPlace"),
    (r"--resume-positions\b", "resume"),
    (r" \(--partitions\)", " (df.repartition)"),
    (r"--partitions\b", "number of partitions of df"),
    (r"use --master ", "use master "),
    (r"--num-executors|NUM_EXECUTORS", "spark.executor.instances"),
    (r"--executor-cores|EXECUTOR_CORES", "spark.executor.cores"),
    (r"; EXECUTOR_MEMORY of launch/submit-supplier| \(launch/submit-supplier computes it\)", ""),
    (r"each node of --hosts", "each node of the ranks"),
    (r"the Supplier's --hosts and mpirun's host file must", "Spark's executors and the ranks must"),
    (r"the Supplier's log", "Spark's log"),
)  # fmt: skip
_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


def in_words_of_run(text: str) -> str:
    """The message of an error of this project."""
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    return _OPTION.sub(lambda found: _OPTIONS.get(found[1], found[0]), text)
