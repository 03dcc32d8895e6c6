#!/usr/bin/env bash
# Builds the package libsupply, or supply-mpi. conda sets CMAKE_ARGS, CPU_COUNT, PKG_NAME and PREFIX.
set -euo pipefail
case $PKG_NAME in
    libsupply)
        components=(runtime dev)
        options=(-DSUPPLY_BUILD_TOOLS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
        ;;
    supply-mpi)
        components=(mpi)
        options=(-DSUPPLY_LINALG=openblas -DCMAKE_REQUIRE_FIND_PACKAGE_MPI=ON)
        ;;
    *)
        echo "build-library.sh: error: PKG_NAME=$PKG_NAME: it must be libsupply or supply-mpi" >&2
        exit 2
        ;;
esac
# shellcheck disable=SC2086
cmake -S mpi-client -B "build-$PKG_NAME" ${CMAKE_ARGS-} -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$PREFIX" \
    -DSUPPLY_BUILD_TESTS=OFF -DSUPPLY_BUILD_EXAMPLES=OFF "${options[@]}"
cmake --build "build-$PKG_NAME" --parallel "$CPU_COUNT"
for component in "${components[@]}"; do
    cmake --install "build-$PKG_NAME" --component "$component"
done
