#!/usr/bin/env bash
# Makes virtual environments with the frameworks that FleetX is compared with, from PyPI. Only benchmarks and parity
# tests use them, never the product.
#   bench/setup-peers.sh                    torch and paddlepaddle, in .venv-peers
#   bench/setup-peers.sh torch              one of them
#   bench/setup-peers.sh tokenizers         Hugging Face's tokenizers and subword-nmt, in .venv-peers
#   bench/setup-peers.sh exchange           onnxruntime, and transformers with torch, in .venv-peers
#   bench/setup-peers.sh ps                 the peers of parameter servers: tensorflow, paddle2.6 and paddle1.8, each in
#                                           an environment of its own (.venv-peers-NAME), since no two go together
#   PIP_INDEX_URL=... bench/setup-peers.sh  from another index, such as one with CPU-only builds
# The torch of PyPI comes with CUDA libraries that it needs to load even on a CPU: about 3 GB to
# download, 7 GB on disk. (Debian's python3-torch is enough for the parity tests and much smaller.)
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

fail() {
  echo "setup-peers: $*" >&2
  exit 1
}

# make_venv FOLDER PYTHON...: with the first of these interpreters that has venv.
make_venv() {
  local venv=$1 python
  shift
  [[ -x $venv/bin/python ]] && return
  for python in "$@"; do
    "$python" -m venv "$venv" >/dev/null 2>&1 && return
    rm -rf "$venv"
  done
  fail "no venv for $venv by $*; apt-get install python3-venv, or install that version of Python"
}

# install FOLDER PYTHON-VERSION MODULE PACKAGE...: an environment of its own.
install() {
  local venv=$1 version=$2 module=$3
  shift 3
  make_venv "$venv" "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python
  add "$venv" "$module" "$@"
}

# add FOLDER MODULE PACKAGE...: into an environment that is there.
add() {
  local venv=$1 module=$2
  shift 2
  echo "setup-peers: installing $* into $venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  "$venv/bin/python" -c "import $module; print('setup-peers:', '$module', $module.__version__)" 2>/dev/null ||
    fail "$module is installed in $venv but does not load: $venv/bin/python -c 'import $module' says why"
}

(($#)) || set -- torch paddlepaddle
read -ra peers <<<"${*/ps/tensorflow paddle2.6 paddle1.8}"
for peer in "${peers[@]}"; do
  case $peer in
    torch | paddlepaddle)
      make_venv .venv-peers python3 /usr/bin/python3 # Debian's own has venv in a package of its own
      add .venv-peers "${peer/paddlepaddle/paddle}" numpy pillow "$peer"
      ;;
    tokenizers)
      make_venv .venv-peers python3 /usr/bin/python3
      add .venv-peers tokenizers tokenizers subword-nmt
      ;;
    exchange)
      make_venv .venv-peers python3 /usr/bin/python3
      add .venv-peers onnxruntime numpy onnxruntime
      add .venv-peers transformers torch transformers safetensors
      ;;
    tensorflow) install .venv-peers-tensorflow 3.11 tensorflow tensorflow-cpu==2.21.0 ;;
    paddle2.6) install .venv-peers-paddle2.6 3.10 paddle paddlepaddle==2.6.2 'numpy<2' protobuf==3.20.3 setuptools ;;
    paddle1.8) install .venv-peers-paddle1.8 3.7 paddle paddlepaddle==1.8.5 'protobuf<3.21' ;;
    *) fail "no peer '$peer'; known: torch, paddlepaddle, tokenizers, exchange, tensorflow, paddle2.6, paddle1.8, and ps for the last three" ;;
  esac
done
