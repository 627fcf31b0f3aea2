#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests. Arguments go to ctest:
# ./test.sh -L ops
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
trap 'echo "test: failed in line $LINENO; the lines above say why" >&2' ERR

echo "[1/3] packages"
scripts/setup.sh test
echo "[2/3] build"
scripts/build release -DFLEETX_TESTS=ON
echo "[3/3] tests"
trap - ERR  # ctest's own summary closes the output
ctest --test-dir build/release --output-on-failure -j 2 "$@"
