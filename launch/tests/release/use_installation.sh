#!/bin/sh
# What a user does with the installation under PREFIX, in the folder WORK: the tools, a program in C, a run.
# EXAMPLES is the folder of the examples in C, LMDB one of digits.
set -eu
cd "$WORK"
for tool in supply-cat supply-clean supply-stat supply-doctor; do
    "$PREFIX/bin/$tool" --version
done
# shellcheck disable=SC2046
"${MPICC:-mpicc}" "$EXAMPLES/datums.c" -o datums $(pkg-config --cflags --libs supply)
"$PREFIX/bin/supply-make-configs" 1 "$WORK/pairs" conf
"$PREFIX/bin/supply-run" --lmdb "$LMDB" --ranks 2 --epochs 1 -- ./datums
