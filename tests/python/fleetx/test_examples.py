"""The programs in examples/ that train with servers, and without."""
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
# What the last of the printed numbers is at least. (Asynchronous workers differ from run to run.)
LEARNED = {"ctr_servers": (r"AUC (\d\.\d+)", 0.9), "wide_deep": (r"auc: (\d\.\d+)", 0.82), "deepfm": (r"auc: (\d\.\d+)", 0.92),
           "word2vec": (r"(\d+\.\d) % of the words", 95)}


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize("servers", [0, 1])
def test_it_learns(name, servers, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    start = ["fleetrun", "--server_num=1", "--worker_num=2"] if servers else [sys.executable]
    got = subprocess.run([*start, str(EXAMPLES / f"{name}.py")], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    pattern, enough = LEARNED[name]
    values = [float(v) for v in re.findall(pattern, got.stdout + got.stderr)]
    assert got.returncode == 0 and len(values) >= 2 and values[-1] >= enough, got.stdout + got.stderr


def test_pre_training_helps(tmp_path):
    got = subprocess.run([sys.executable, str(EXAMPLES / "bert_languages.py"), "1"], cwd=tmp_path, capture_output=True, text=True,
                         timeout=400)
    if "on this machine; install programs with translations" in got.stderr:
        pytest.skip("no translated programs are installed: no messages to look at")
    right = {kind: float(value) for kind, value in re.findall(r"^(pre-trained|from scratch): (\d+\.\d) % right", got.stdout, re.M)}
    assert got.returncode == 0 and right["pre-trained"] > right["from scratch"] + 20, got.stdout + got.stderr
