#!/usr/bin/env bash
# Makes a virtual environment with the frameworks that FleetX is compared with: PyTorch and
# PaddlePaddle, from PyPI. Only benchmarks and parity tests use it, never the product.
#   bench/setup-peers.sh                    both, in .venv-peers
#   bench/setup-peers.sh torch              one of them
#   PIP_INDEX_URL=... bench/setup-peers.sh  from another index, such as one with CPU-only builds
# The torch of PyPI comes with CUDA libraries that it needs to load even on a CPU: about 3 GB to
# download, 7 GB on disk. (Debian's python3-torch is enough for the parity tests and much smaller.)
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
venv=.venv-peers
peers=("$@")
((${#peers[@]})) || peers=(torch paddlepaddle)

if [[ ! -x $venv/bin/python ]]; then
  # A Python with venv; Debian's own has it in a package of its own.
  for python in python3 /usr/bin/python3; do
    "$python" -m venv "$venv" 2>/dev/null && break
    rm -rf "$venv"
  done
fi
[[ -x $venv/bin/python ]] || { echo "setup-peers: no venv; apt-get install python3-venv" >&2; exit 1; }
echo "setup-peers: installing ${peers[*]}, numpy and pillow into $venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check numpy pillow "${peers[@]}"
for peer in "${peers[@]}"; do
  module=${peer/paddlepaddle/paddle}
  "$venv/bin/python" -c "import $module; print('setup-peers:', '$module', $module.__version__)"
done
