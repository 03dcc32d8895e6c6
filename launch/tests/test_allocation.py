"""How launch/slurm-run reads an allocation. launch/tests/cluster/test_slurm.py has whole jobs."""

import os
import subprocess

import pytest
from spark_supplier.launch import slurm_run

from places import LAUNCH


@pytest.mark.parametrize(
    "text, tasks", [("4", [4]), ("2(x3)", [2, 2, 2]), ("2(x2),1", [2, 2, 1]), ("1,12(x2),3", [1, 12, 12, 3])]
)
def test_tasks_of_each_node(text, tasks):
    assert slurm_run.tasks_of_nodes(text) == tasks


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (("--lmdb", "/a", "--", "true"), 1, "this is no job of Slurm: submit it by sbatch"),
        (("--lmdb", "/a"), 2, "no program after '--'"),
        (("--ranks", "3", "--", "true"), 2, "--ranks comes from the allocation"),
        (("--serve", "--", "true"), 2, "--serve is not for a job of Slurm"),
        (("--serve-ranks=2", "--", "true"), 2, "--serve-ranks is not for a job of Slurm"),
        (("--executor-memory", "much", "--", "true"), 2, "--executor-memory 'much' is not a size"),
    ],
    ids=str,
)
def test_what_it_refuses(tmp_path, arguments, status, message):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    done = subprocess.run(
        [LAUNCH / "slurm-run", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == status
    assert f"slurm-run: error: {message}" in done.stderr
    assert list(tmp_path.iterdir()) == []
