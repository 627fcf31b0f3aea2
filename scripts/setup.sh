#!/usr/bin/env bash
# Installs the Debian packages that FleetX needs and that are missing. Safe to run again and again.
#   scripts/setup.sh build   what is needed to build and run (the default)
#   scripts/setup.sh test    and to test
#   scripts/setup.sh ci      and for all checks: clang-format, fuzz targets, parity with PyTorch, benchmarks against Gloo
set -euo pipefail

build=(g++ cmake ninja-build ccache libdnnl-dev libprotobuf-dev protobuf-compiler nlohmann-json3-dev
       libcli11-dev libspdlog-dev libfmt-dev libpng-dev libturbojpeg0-dev libjpeg62-turbo-dev zlib1g-dev libssl-dev libhwloc-dev
       libopenmpi-dev libcurl4-openssl-dev libarchive-dev libyaml-cpp-dev libicu-dev dataset-fashion-mnist
       pybind11-dev python3-dev python3-numpy)
test=(libgtest-dev python3 python3-pytest openmpi-bin iproute2)
# clang-format 14 is the pinned style; the fuzz targets need a clang that knows std::source_location.
ci=(git libgloo-dev clang-format-14 clang-16 libclang-rt-16-dev libomp-16-dev llvm-16 python3-torch slurm-wlm munge)

case "${1:-build}" in
  build) packages=("${build[@]}") ;;
  test) packages=("${build[@]}" "${test[@]}") ;;
  ci) packages=("${build[@]}" "${test[@]}" "${ci[@]}") ;;
  *) echo "setup: unknown set of packages '$1'; known: build, test, ci" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is not a Debian system; install the like of these yourself: ${packages[*]}" >&2
  exit 0
fi

# The rule of cmake/python.cmake: the user's own where it has NumPy and headers.
say_interpreter() {
  local probe='import numpy, os, sys, sysconfig; assert os.path.exists(sysconfig.get_paths()["include"] + "/Python.h")'
  local python
  python=$(python3 -c "$probe; print(sys.executable)" 2>/dev/null) || python=/usr/bin/python3
  echo "setup: the Python packages are for $python"
}

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "setup: all ${#packages[@]} packages are there"
  say_interpreter
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages; as root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  "$@" >"$log" 2>&1 && return
  tail -n 20 "$log" >&2
  echo "setup: failed: $*" >&2
  exit 1
}
echo "setup: reading the package lists"
quietly "${as_root[@]}" apt-get update -q
echo "setup: installing ${missing[*]}"
quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"
echo "setup: installed ${#missing[@]} packages"
say_interpreter
