#!/usr/bin/env bash
# Runs parity.py with the interpreter that has PyTorch: that of bench/setup-peers.sh, else Debian's.
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
python=$here/../../.venv-peers/bin/python
[[ -x $python ]] || python=/usr/bin/python3
export OMP_WAIT_POLICY=passive  # other tests run beside this one, and PyTorch's threads would spin on their cores
exec "$python" "$here/parity.py" "$@"
