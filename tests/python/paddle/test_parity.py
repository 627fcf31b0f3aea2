"""Results are those of a real PaddlePaddle, where one is installed for comparison (.venv-peers)."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
PEER = HERE.parents[2] / ".venv-peers" / "bin" / "python"


def results(python, path, environment):
    subprocess.run([python, str(HERE / "parity_cases.py"), str(path)], env=environment, check=True, capture_output=True)
    return np.load(path)


def test_against_paddlepaddle(tmp_path):
    without = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if not PEER.exists() or subprocess.run([PEER, "-c", "import paddle"], env=without, capture_output=True).returncode:
        pytest.skip(f"SKIPPED: no PaddlePaddle in {PEER}")
    ours = results(sys.executable, tmp_path / "ours.npz", os.environ)
    theirs = results(PEER, tmp_path / "theirs.npz", without)
    assert set(ours) == set(theirs) and len(ours.files) > 130
    different = [k for k in ours if ours[k].shape != theirs[k].shape or
                 not np.allclose(ours[k], theirs[k], rtol=1e-3, atol=1e-4)]
    assert not different, different
