#!/bin/sh
# Builds the sdist of a release in the empty folder WORK, and uses the installation (use_installation.sh: USE).
set -eu
cd "$WORK"
mkdir sources
tar -xf "$(echo "$RELEASE"/spark_supplier-*.tar.gz)" -C sources --strip-components 1
cmake -S sources/mpi-client -B native -DSUPPLY_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$WORK/prefix"
cmake --build native --parallel 2
cmake --install native
SPARK_HOME=$SPARK/pyspark
PREFIX=$WORK/prefix
PKG_CONFIG_PATH=$(dirname "$(find "$PREFIX" -name supply.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export SPARK_HOME PREFIX PKG_CONFIG_PATH LD_LIBRARY_PATH
sh "$USE"
