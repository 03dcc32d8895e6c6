"""The launchers as functions: a Python environment makes a program of each (pyproject.toml)."""

import functools

from .command import run

make_configs = functools.partial(run, "make_configs")
run_ranks = functools.partial(run, "run_ranks")
slurm_run = functools.partial(run, "slurm_run")
submit_supplier = functools.partial(run, "submit_supplier")
supplier = functools.partial(run, "supplier")
supply_doctor = functools.partial(run, "supply_doctor")
supply_run = functools.partial(run, "supply_run")
