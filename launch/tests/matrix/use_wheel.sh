#!/bin/sh
# Installs the wheel for the Python PYTHON into the empty folder WORK, and runs a program there with the Spark in the
# folder SPARK. Arguments: the program's words, with env/ for the environment. PACKAGES: what pip installs, too.
set -eu
cd "$WORK"
"$PYTHON" -m venv ${SYSTEM_PACKAGES:+--system-site-packages} env
# Like an installed PySpark, but one copy for all environments.
echo "$SPARK" >"$(echo env/lib/python3*/site-packages)/spark.pth"
# shellcheck disable=SC2086
env/bin/python -m pip install --quiet --disable-pip-version-check --only-binary spark-supplier --find-links "$RELEASE" \
    'spark-supplier[spark]' ${PACKAGES-}
# A wheel may bring an MPI.
PATH=$WORK/env/bin:$PATH
export PATH
"$@"
