"""Interpreters with packages that the product does not need: this one, or that of bench/setup-peers.sh."""
import functools
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@functools.lru_cache(None)
def python_with(*modules):
    """The first interpreter that imports these; the test is skipped where there is none, which `pytest -rs` tells."""
    candidates = [sys.executable, os.environ.get("FLEETX_PEERS_PYTHON", ""), str(ROOT / ".venv-peers/bin/python"),
                  "/usr/bin/python3"]
    for python in filter(os.path.exists, filter(None, candidates)):
        if subprocess.run([python, "-c", "import " + ", ".join(modules)], capture_output=True, env=plain()).returncode == 0:
            return python
    pytest.skip(f"no interpreter has {', '.join(modules)}: bench/setup-peers.sh exchange, or set FLEETX_PEERS_PYTHON")


def plain():
    """The environment without our `paddle`: what a peer imports is its own."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def run_script(python, script, *arguments):
    got = subprocess.run([python, "-c", script, *map(str, arguments)], capture_output=True, text=True, env=plain(), timeout=600)
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout
