#!/bin/sh
# Unpacks the tarball of a release into the empty folder WORK, and uses it (use_installation.sh: USE).
set -eu
cd "$WORK"
mkdir prefix
tar -xf "$(echo "$RELEASE"/spark-supplier-*-linux-x86_64.tar.gz)" -C prefix --strip-components 1
SPARK_HOME=$SPARK/pyspark
PREFIX=$WORK/prefix
PKG_CONFIG_PATH=$PREFIX/lib/x86_64-linux-gnu/pkgconfig
LD_LIBRARY_PATH=$PREFIX/lib/x86_64-linux-gnu
export SPARK_HOME PREFIX PKG_CONFIG_PATH LD_LIBRARY_PATH
sh "$USE"
