"""What fleetrun does when processes of a job with servers die or are stopped."""
import re
import shutil

import pytest

import documents

# A worker or server sends signals as the arguments say; all learn the same small table.
TRAIN = '''
import argparse
import os
import pathlib
import signal
import time
import numpy as np
import paddle
import paddle.fluid
from paddle import static
from paddle.distributed import fleet

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="async")
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--kill", default="")        # worker1, server0
parser.add_argument("--signal", type=int, default=9)
parser.add_argument("--snapshot")                # the server is killed when this file is there
parser.add_argument("--then", default="")        # this server is killed, too, when the first one is a copy again
args = parser.parse_args()

paddle.enable_static()
paddle.seed(3)
fleet.init()
ids, y = static.data("ids", [None, 1], "int64"), static.data("y", [None, 1], "float32")
row = paddle.reshape(paddle.fluid.layers.embedding(ids, [20, 4], is_sparse=True), [-1, 4])
loss = paddle.mean(paddle.square(static.nn.fc(row, 1) - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = args.mode != "sync"
if args.mode == "geo":
    strategy.a_sync_configs = {"k_steps": 5}
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
again = int(os.environ.get("FLEETX_REJOIN", 0))
me = ("server%s" if fleet.is_server() else "worker%s") % (fleet.server_index() if fleet.is_server() else fleet.worker_index())

if fleet.is_server():
    pathlib.Path(me + ".pid").write_text(str(os.getpid()))
    fleet.init_server()
    fleet.run_server()
    print("the server has ended")
else:
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    fleet.init_worker()
    fleet.barrier_worker()
    first = last = None
    for step in range(args.steps):
        some = np.random.RandomState(step * 2 + fleet.worker_index()).randint(0, 20, (16, 1))
        last, = exe.run(feed={"ids": some, "y": (some % 4).astype("float32")}, fetch_list=[loss])
        first = last if first is None else first
        time.sleep(0.01)
        if step == 50 and not again:
            if args.kill == me:
                os.kill(os.getpid(), args.signal)
            if args.kill.startswith("server") and me == "worker0":
                while args.snapshot and not os.path.exists(args.snapshot):
                    time.sleep(0.02)
                os.kill(int(pathlib.Path(args.kill + ".pid").read_text()), args.signal)
        if step == 100 and args.then and me == "worker0":
            back = pathlib.Path("log/serverlog." + args.kill[-1])
            while back.read_text().count("has all that was learned") < 2:
                time.sleep(0.02)
            time.sleep(0.5)  # fleetrun is told
            os.kill(int(pathlib.Path(args.then + ".pid").read_text()), 9)
    print("%s start %d: first %f last %f" % (me, again, first, last), flush=True)
    fleet.barrier_worker()
    fleet.stop_worker()
    pathlib.Path(me + ".done").write_text("")
'''


def run(folder, flags, *arguments, environment=None):
    (folder / "train.py").write_text(TRAIN)
    shutil.rmtree(folder / "log", ignore_errors=True)
    result = documents.run(f"fleetrun {flags} train.py " + " ".join(arguments), folder, timeout=100,
                           environment={"OMP_NUM_THREADS": "1", **(environment or {})})
    result.launcher = result.output
    result.logs = {p.name: p.read_text() for p in (folder / "log").glob("*log.*")}
    return result


def learned(log):
    """Of every start of a worker that came to its end: it has learned."""
    ends = re.findall(r"start (\d+): first (\S+) last (\S+)", log)
    return [int(start) for start, first, last in ends if float(last) < 0.3 * max(float(first), 0.5)]


@pytest.mark.parametrize("mode", ["async", "geo"])
def test_the_others_go_on_and_the_worker_takes_part_again(tmp_path, mode):
    r = run(tmp_path, "--server_num=1 --worker_num=3", "--mode", mode, "--kill", "worker1")
    assert r.code == 0, r.launcher + str(r.logs)
    assert "worker 1 failed after" in r.launcher and "SIGKILL" in r.launcher, r.launcher
    assert f"worker 1: started again (1 of 3) while the others go on ({mode})" in r.launcher, r.launcher
    assert learned(r.logs["workerlog.0"]) == [0] and learned(r.logs["workerlog.2"]) == [0], r.logs
    assert learned(r.logs["workerlog.1"]) == [1], r.logs
    assert all((tmp_path / f"worker{i}.done").exists() for i in range(3))


def test_a_worker_that_is_not_started_again_is_told_by_the_exit_code(tmp_path):
    r = run(tmp_path, "--server_num=1 --worker_num=2 --max_restart=0", "--kill", "worker1")
    assert r.code == 137, r.launcher
    assert "the job came to its end without it" in r.launcher, r.launcher
    assert learned(r.logs["workerlog.0"]) == [0] and (tmp_path / "worker0.done").exists(), r.logs


@pytest.mark.parametrize("number", [9, 19])
def test_a_server_goes_on_from_its_snapshot(tmp_path, number):
    r = run(tmp_path, "--server_num=2 --worker_num=2 --snapshot_interval=0.3", "--kill", "server1", "--steps", "400",
            "--signal", str(number), "--snapshot", "log/snapshots/server.1", environment={"FLEETX_PS_SILENCE": "3"})
    assert r.code == 0, r.launcher + str(r.logs)
    assert "server 1: started again (1 of 3) while the others go on (async); it loads its last snapshot" in r.launcher
    if number == 19:
        assert "server 1 is stopped (SIGSTOP) since" in r.launcher, r.launcher
    log = r.logs["serverlog.1"]
    assert re.search(r"server 1 goes on from .*server.1, which has \d+ pushes", log), log
    assert re.search(r"of the pushes of worker 0, \d+ are lost since the snapshot: ", log), log
    assert "was started again and goes on from its snapshot" in r.logs["workerlog.0"], r.logs
    assert all(learned(r.logs[f"workerlog.{i}"]) == [0] for i in range(2)), r.logs


@pytest.mark.parametrize("number", [9, 19])
def test_with_replicas_nothing_is_lost(tmp_path, number):
    whole = run(tmp_path, "--server_num=2 --worker_num=2 --replicas=2", "--mode", "sync")
    assert whole.code == 0 and "all 4 processes succeeded" in whole.launcher, whole.launcher + str(whole.logs)
    r = run(tmp_path, "--server_num=2 --worker_num=2 --replicas=2", "--mode", "sync", "--kill", "server1", "--signal", str(number))
    assert r.code == 0 and "server 1: its copy takes its place; nothing is lost" in r.launcher, r.launcher + str(r.logs)
    assert "the copy of server 1" in r.logs["serverlog.0"] and "takes its place" in r.logs["serverlog.0"], r.logs
    for i in range(2):
        end = [re.search("last (.*)", log[f"workerlog.{i}"])[1] for log in (whole.logs, r.logs)]
        assert end[0] == end[1]


def test_with_replicas_a_second_loss_loses_nothing(tmp_path):
    flags = "--server_num=2 --worker_num=2 --replicas=2"
    whole = run(tmp_path, flags, "--mode", "sync")
    r = run(tmp_path, flags, "--mode", "sync", "--kill", "server1", "--then", "server0")
    assert r.code == 0, r.launcher + str(r.logs)
    for server in range(2):
        assert f"server {server}: its copy takes its place; nothing is lost; started again (1 of 3)" in r.launcher, r.launcher
    assert whole.code == 0 and learned(r.logs["workerlog.0"]) == [0], r.logs
    for i in range(2):
        end = [re.search("last (.*)", log[f"workerlog.{i}"])[1] for log in (whole.logs, r.logs)]
        assert end[0] == end[1]


def test_a_server_without_snapshot_stops_the_job(tmp_path):
    r = run(tmp_path, "--server_num=1 --worker_num=2", "--kill", "server0")
    assert r.code == 137, r.launcher
    assert "server 0: it has no snapshot to go on from" in r.launcher, r.launcher


@pytest.mark.parametrize("who", ["worker1", "server0"])
def test_sync_names_who_is_stopped_and_ends(tmp_path, who):
    r = run(tmp_path, "--server_num=1 --worker_num=2", "--mode", "sync", "--kill", who, "--signal", "19", "--steps", "3000")
    assert r.code == 137, r.launcher
    name = who[:-1] + " " + who[-1]
    told = re.search(name + r" is stopped \(SIGSTOP\) since ([0-9.]+) s", r.launcher)
    assert told and float(told[1]) < 5 and f"{name} failed: it was stopped" in r.launcher, r.launcher
