"""`python -m spark_supplier.launch NAME ARGUMENT...` is the launcher of that name, as supply-run, for any Python."""

import sys

from .command import run
from .places import LAUNCHERS

_MODULES = {name: launcher.replace("-", "_") for launcher, name in LAUNCHERS.items()}

if len(sys.argv) < 2 or sys.argv[1] not in _MODULES:
    print(f"Usage: python -m spark_supplier.launch {{{','.join(sorted(_MODULES))}}} ARGUMENT...", file=sys.stderr)
    sys.exit(2)
del sys.argv[0]
run(_MODULES[sys.argv[0]])
