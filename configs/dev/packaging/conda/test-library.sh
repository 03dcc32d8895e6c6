#!/usr/bin/env bash
# A C program of a user of libsupply: it must print the version. conda sets PREFIX and PKG_VERSION.
set -euo pipefail
cat >client.c <<'C'
#include <stdio.h>
#include <supply.h>
int main(void) { return puts(supply_version()) < 0; }
C
export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
# shellcheck disable=SC2046
"${CC:-cc}" client.c -o client $(pkg-config --cflags --libs supply) -Wl,-rpath,"$PREFIX/lib"
[[ $(./client) == "$PKG_VERSION" ]] || {
    echo "test-library.sh: error: libsupply says version $(./client), and the package $PKG_VERSION" >&2
    exit 1
}
