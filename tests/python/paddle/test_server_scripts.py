"""Scripts as they are found in public, with servers and without: whole programs in server_scripts/."""
import pathlib
import random
import re
import socket
import subprocess
import sys

import pytest

import documents

SCRIPTS = pathlib.Path(__file__).with_name("server_scripts")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With data/part-0, ...: four numbers, three ids and a label per line."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    draw = random.Random(1)
    (tmp_path / "data").mkdir()
    for part in range(4):
        lines = []
        for _ in range(100):
            numbers, ids = [draw.random() for _ in range(4)], [draw.randrange(50) for _ in range(3)]
            click = int(sum(i % 5 for i in ids) + numbers[0] > 6.5)
            lines.append("4 " + " ".join(f"{n:.4f}" for n in numbers) + "".join(f" 1 {i}" for i in ids) + f" 1 {click}\n")
        (tmp_path / "data" / f"part-{part}").write_text("".join(lines))
    return tmp_path


def check(result, log):
    values = [float(v) for v in re.findall(r"auc[ =]\[?(\d\.\d+)", log)]
    assert result.code == 0 and values and values[-1] > 0.8, result.output + log


@pytest.mark.parametrize("name", ["config_and_loader", "geo_by_k_steps", "clip_and_decay", "generator_and_entry"])
def test_with_servers_and_without(name, folder):
    script = SCRIPTS / f"{name}.py"
    alone = documents.run([sys.executable, str(script)], folder, timeout=120)
    check(alone, alone.output)
    together = documents.run(f"fleetrun --server_num=2 --worker_num=2 {script}", folder, timeout=120)
    check(together, (folder / "log" / "workerlog.0").read_text())


def test_processes_that_are_started_by_hand(folder):
    held = [socket.socket() for _ in range(2)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    servers = ",".join(f"127.0.0.1:{s.getsockname()[1]}" for s in held)
    for s in held:
        s.close()
    started = [subprocess.Popen([sys.executable, str(SCRIPTS / "by_hand.py"), role, str(i), servers], cwd=folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for role in ("worker", "server") for i in range(2)]
    try:
        outputs = [p.communicate(timeout=120)[0] for p in started]
    finally:
        for p in started:
            p.kill()
    assert [p.returncode for p in started] == [0] * 4, "\n".join(outputs)
    values = [float(v) for v in re.findall(r"auc=\[(\d\.\d+)", outputs[0])]
    assert values[-1] > 0.8, outputs[0]
