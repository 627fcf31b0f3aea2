#!/usr/bin/env bash
# Installs a finished build into a prefix of its own and uses it from outside, as a user would.
# usage: package_test.sh BUILD_FOLDER CXX
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$1 cxx=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/prefix" >"$work/log" || fail "install: $(tail -n 5 "$work/log")"
include=$work/prefix/include

# Whoever uses the library needs none of the libraries behind it, so no installed header may name
# one (the compiler's and the system's own are there for everyone).
foreign=$(grep -rnE '#include <[^>]*[./]' "$include" | grep -vE '<(unistd|sys/[a-z]+|[a-z]+intrin)\.h>' || true)
[[ -z $foreign ]] || fail "installed headers include what is not ours: $foreign"

cp -r "$here/consumer" "$work/source"
(cd "$include" && find fleetx -name '*.h' | sort | sed 's/.*/#include "&"/') >"$work/source/all_headers.cc"
cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" || fail "configure: $(tail -n 20 "$work/log")"
cmake --build "$work/build" >"$work/log" || fail "build: $(tail -n 20 "$work/log")"
"$work/build/consumer"

# The Python packages, where the build has them, work from the prefix alone.
module=$(find "$work/prefix" -name '_fleetx.*.so')
if [[ -n $module ]]; then
  python=$(sed -n 's/^FLEETX_PYTHON:FILEPATH=//p' "$build/CMakeCache.txt")
  (cd "$work" && PYTHONPATH=$(dirname "$module") "$python" -c 'import fleetx, paddle; paddle.utils.run_check()') ||
    fail "the installed Python packages"
fi
