"""Jobs with parameter servers, started by fleetrun."""
import contextlib
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import documents

# One script for all: modes, optimizers and kinds of tables by its arguments.
TRAIN = '''
import argparse
import os
import signal
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="sync")
parser.add_argument("--begin", type=int, default=0)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--load")
parser.add_argument("--save")
parser.add_argument("--model")
parser.add_argument("--dies", type=int, default=-1)
parser.add_argument("--order", default="2.0")
args = parser.parse_args()

paddle.enable_static()
paddle.seed(3)
fleet.init()
ids, y = static.data("ids", [None, 2], "int64"), static.data("y", [None, 1], "float32")
emb = static.nn.sparse_embedding(ids, [10, 4], param_attr=paddle.ParamAttr(
    name="table", initializer=paddle.nn.initializer.Constant(0.1)))
h = static.nn.fc(paddle.reshape(emb, [-1, 8]), 8, activation="tanh", weight_attr=paddle.ParamAttr(name="w"))
out = static.nn.fc(h, 1)
loss = paddle.mean(paddle.square(out - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = args.mode != "sync"
fleet.distributed_optimizer(paddle.optimizer.Adam(0.02), strategy).minimize(loss)
test = static.default_main_program().clone(for_test=True)
exe = static.Executor(paddle.CPUPlace())
BIG = 10 ** 15  # far beyond the declared size


def batch(step, size=24):
    rng = np.random.RandomState(step)
    some = rng.randint(0, 30, (size, 2))
    return {"ids": some * BIG, "y": (some[:, :1] % 4 * 0.25).astype("float32")}


if fleet.is_server():
    fleet.init_server(args.load)
    fleet.run_server()
    print("the server has ended")
else:
    if args.order == "1.x":
        fleet.init_worker()
        exe.run(static.default_startup_program())
    else:
        exe.run(static.default_startup_program())
        fleet.init_worker()
    if args.load and fleet.server_num() == 0:
        paddle.fluid.io.load_persistables(exe, args.load)
    rank, size = fleet.worker_index(), fleet.worker_num()
    check, = exe.run(test, feed=batch(1000), fetch_list=[loss])
    print("first %.7f" % check)
    for step in range(args.begin, args.steps):
        feed = {k: v[rank * 24 // size:(rank + 1) * 24 // size] for k, v in batch(step).items()}
        value, = exe.run(feed=feed, fetch_list=[loss])
        mean = fleet.util.all_reduce(float(value)) / size
        print("step %d loss %.7f" % (step, mean), flush=True)
        if rank == args.dies and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    fleet.barrier_worker()
    check, = exe.run(test, feed=batch(1000), fetch_list=[loss])
    print("last %.7f" % check)
    if args.save:
        fleet.save_persistables(exe, args.save)
    if args.model:
        fleet.save_inference_model(exe, args.model, ["ids"], [out])
    fleet.stop_worker()
'''


def run(folder, servers, workers, *arguments, timeout=120):
    """The result, with the first worker's output in it."""
    (folder / "train.py").write_text(TRAIN)
    shutil.rmtree(folder / "log", ignore_errors=True)
    result = documents.run(f"fleetrun --server_num={servers} --worker_num={workers} train.py " + " ".join(arguments), folder,
                           timeout=timeout, environment={"OMP_NUM_THREADS": "1"})
    result.launcher = result.output
    result.output += "".join(p.read_text() for p in sorted((folder / "log").glob("*log.*")))
    result.first = (folder / "log" / "workerlog.0").read_text()
    return result


def numbers(text, word):
    return [float(v) for v in re.findall(word + r" (\d+\.\d+)", text)]


def trained(result):
    assert result.code == 0, result.output[-4000:]
    return numbers(result.first, "loss"), numbers(result.first, "first")[0], numbers(result.first, "last")[0]


def test_sync_workers_learn_like_one(tmp_path):
    alone, first, last = trained(run(tmp_path, 1, 1))
    assert len(alone) == 12 and last < 0.7 * first
    for servers, workers, order in ((1, 2, "2.0"), (2, 3, "1.x")):
        together, _, end = trained(run(tmp_path, servers, workers, "--order", order))
        np.testing.assert_allclose(together, alone, rtol=1e-5)
        assert end == pytest.approx(last, rel=1e-5)
        assert (tmp_path / "log" / "serverlog.0").read_text().count("the server has ended") == 1


# Output that is not buffered comes word by word, and all processes write to one place.
MPIRUN = "env -u PYTHONUNBUFFERED mpirun --allow-run-as-root --oversubscribe -np 4 python train.py"


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
def test_mpirun_starts_a_server_for_every_worker(tmp_path):
    alone, _, _ = trained(run(tmp_path, 1, 1))
    roles = "from paddle.distributed.fleet.base.role_maker import MPISymetricRoleMaker\nfleet.init(MPISymetricRoleMaker())"
    (tmp_path / "train.py").write_text(TRAIN.replace("fleet.init()", roles))
    result = documents.run(MPIRUN, tmp_path, environment={"OMP_NUM_THREADS": "1"})
    assert result.code == 0 and result.output.count("the server has ended") == 2, result.output
    losses = numbers(result.output, "step 11 loss")
    assert losses == pytest.approx([alone[-1]] * 2, rel=1e-5), result.output


def test_async_learns(tmp_path):
    _, first, last = trained(run(tmp_path, 2, 2, "--mode", "async", "--steps", "40"))
    assert last < 0.5 * first


def run_alone(folder, *arguments):
    """The same script as one process without servers."""
    (folder / "train.py").write_text(TRAIN)
    result = documents.run("python train.py " + " ".join(arguments), folder, environment={"OMP_NUM_THREADS": "1"})
    result.first = result.output
    return result


def test_what_was_saved_goes_on_with_another_number_of_servers(tmp_path):
    """Of none, one and two, with parameters, rows and the optimizer's state: as if it had not been interrupted."""
    def job(servers, *arguments):
        return trained(run(tmp_path, servers, 1, *arguments) if servers else run_alone(tmp_path, *arguments))
    whole, _, _ = job(1)
    for before in (0, 2):
        saved = f"saved{before}"
        _, _, last = job(before, "--steps", "6", "--save", saved)
        for after in (0, 1, 3):
            losses, first, _ = job(after, "--begin", "6", "--load", saved)
            assert first == pytest.approx(last, rel=1e-5), (before, after)
            np.testing.assert_allclose(losses, whole[6:], rtol=1e-5, err_msg=f"{before} servers, then {after}")


def test_a_model_that_one_process_serves(tmp_path):
    _, _, last = trained(run(tmp_path, 2, 2, "--model", "model"))
    (tmp_path / "serve.py").write_text('''
import numpy as np
import paddle
from paddle import static
paddle.enable_static()
exe = static.Executor(paddle.CPUPlace())
program, feeds, fetches = paddle.fluid.io.load_inference_model("model", exe)
rng = np.random.RandomState(1000)
some = rng.randint(0, 30, (24, 2))
out, = exe.run(program, feed={"ids": some * 10 ** 15}, fetch_list=fetches)
print("last %.7f" % np.mean((out - (some[:, :1] % 4 * 0.25)) ** 2))
''')
    served = documents.run([sys.executable, "serve.py"], tmp_path)
    assert served.code == 0 and numbers(served.output, "last")[0] == pytest.approx(last, rel=1e-4), served.output


def test_a_worker_that_dies_is_named(tmp_path):
    result = run(tmp_path, 1, 2, "--dies", "1", timeout=60)
    assert result.code != 0 and result.seconds < 40
    assert re.search(r"worker 1|rank 1", result.launcher), result.launcher


def test_calls_in_the_wrong_order_say_so(tmp_path):
    (tmp_path / "a.py").write_text('''
import paddle
from paddle import static
from paddle.distributed import fleet
paddle.enable_static()
fleet.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=2,
                                      server_endpoints=["127.0.0.1:1"]))
for call in (fleet.init_worker, fleet.stop_worker, fleet.barrier_worker):
    try:
        call()
    except ValueError as error:
        print(error)
loss = paddle.mean(static.nn.fc(static.data("x", [None, 3], "float32"), 2))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for call in (fleet.run_server, lambda: exe.run(feed={"x": [[1, 2, 3]]}, fetch_list=[loss])):
    try:
        call()
    except ValueError as error:
        print(error)
''')
    got = documents.run([sys.executable, "a.py"], tmp_path).output
    assert got.count("call minimize of fleet::distributed_optimizer first") == 2, got
    assert "worker_endpoints" in got and "this process is worker 0" in got and "call fleet.init_worker" in got, got


def test_a_dataset_trains_with_servers(tmp_path):
    (tmp_path / "train.py").write_text('''
import paddle
import paddle.fluid as fluid
from paddle.distributed import fleet
paddle.enable_static()
fleet.init()
ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
y = fluid.data("y", [None, 1], "int64")
emb = fluid.layers.embedding(ids, [100, 8], is_sparse=True)
pooled = fluid.layers.sequence_pool(emb, "sum")
predict = fluid.layers.fc(pooled, 2, act="softmax")
loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, y))
auc, _, _ = fluid.layers.auc(predict, y)
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.2), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fleet.init_worker()
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var([ids, y])
    dataset.set_batch_size(16)
    dataset.set_filelist(fleet.util.get_file_shard(["a.txt", "b.txt"]))
    dataset.load_into_memory()
    dataset.global_shuffle(fleet)
    for i in range(5):
        exe.train_from_dataset(fluid.default_main_program(), dataset, fetch_list=[auc], fetch_info=["auc"], print_period=10)
    fleet.stop_worker()
''')
    for name, seed in (("a.txt", 1), ("b.txt", 2)):
        rng = np.random.RandomState(seed)
        rows = [rng.randint(0, 100, rng.randint(1, 4)) for _ in range(320)]
        (tmp_path / name).write_text("".join(
            f"{len(r)} {' '.join(map(str, r))} 1 {int(r.min() < 25)}\n" for r in rows))
    result = documents.run("fleetrun --server_num=1 --worker_num=2 train.py", tmp_path)
    log = pathlib.Path(tmp_path / "log" / "workerlog.0").read_text()
    assert result.code == 0, result.output + log
    values = [float(v) for v in re.findall(r"auc=\[?([0-9.]+)", log)]
    assert len(values) == 10 and values[-1] > 0.95, log  # 320 of 640 samples: 20 batches


def test_variables_of_paddle_cloud(tmp_path):
    """Every process is started by itself; workers that are not told each other's addresses meet at the servers."""
    script = TRAIN.replace("fleet.util.all_reduce(float(value)) / size", "float(value)")
    with contextlib.ExitStack() as held:
        ports = []
        for _ in range(2):
            s = held.enter_context(socket.socket())
            s.bind(("127.0.0.1", 0))
            ports.append(s.getsockname()[1])
    common = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(f"127.0.0.1:{p}" for p in ports), "PADDLE_TRAINERS_NUM": "2"}
    processes = {f"server{i}": {"TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.1", "PADDLE_PORT": str(p)}
                 for i, p in enumerate(ports)}
    processes.update({f"worker{i}": {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(i)} for i in range(2)})
    results = {}

    def start(name, own):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(script)
        results[name] = documents.run([sys.executable, "train.py"], tmp_path / name, timeout=100,
                                      environment={**common, **own})
    threads = [threading.Thread(target=start, args=item) for item in processes.items()]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(r.code == 0 for r in results.values()), {n: r.output[-1500:] for n, r in results.items()}
    last = [numbers(results[f"worker{i}"].output, "last")[0] for i in range(2)]
    assert last[0] == last[1] and last[0] < 0.1


@pytest.mark.parametrize("mode", ["sync", "async", "half_async", "geo", "dc_asgd"])
def test_strategies_of_1_x(tmp_path, mode):
    """With a learning rate that decays and a clipped gradient."""
    strategy = f"StrategyFactory.create_{mode}_strategy({5 if mode == 'geo' else ''})"
    if mode == "dc_asgd":
        strategy = "fluid.DistributeTranspilerConfig()\nstrategy.sync_mode = False\nstrategy.enable_dc_asgd = True"
    most = 1.0 if mode == "dc_asgd" else 5.0  # it squares gradients, so large ones make it diverge
    (tmp_path / "train.py").write_text(f'''
import numpy as np
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
fleet.init(role_maker.PaddleCloudRoleMaker())
x, y = fluid.data("x", [None, 1], "int64"), fluid.data("y", [None, 1], "float32")
row = fluid.layers.reshape(fluid.layers.embedding(x, [20, 4], is_sparse=True), [-1, 4])
cost = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(row, 1), y))
strategy = {strategy}
rate = fluid.layers.exponential_decay(0.2, decay_steps=20, decay_rate=0.9)
optimizer = fluid.optimizer.SGD(rate, grad_clip=fluid.clip.GradientClipByGlobalNorm({most}))
fleet.distributed_optimizer(optimizer, strategy).minimize(cost)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    losses = []
    for step in range(150):
        some = np.random.RandomState(step * 2 + fleet.worker_index()).randint(0, 20, (16, 1))
        feed = {{"x": some, "y": (some % 4).astype("float32")}}
        losses.append(float(exe.run(fleet.main_program, feed=feed, fetch_list=[cost])[0]))
    fleet.stop_worker()
    print("first %f last %f" % (losses[0], np.mean(losses[-10:])))
''')
    result = documents.run("fleetrun --server_num=2 --worker_num=2 train.py", tmp_path, environment={"OMP_NUM_THREADS": "1"})
    assert result.code == 0, result.output
    for i in range(2):
        log = (tmp_path / "log" / f"workerlog.{i}").read_text()
        assert numbers(log, "last")[0] < 0.3 * numbers(log, "first")[0], log


TOGETHER = '''
import numpy as np
import paddle
from paddle._native import native
from paddle.distributed import fleet
paddle.enable_static()
fleet.init()
util, server = fleet.util, fleet.is_server()
rank = fleet.server_index() if server else fleet.worker_index()
own = (100 if server else 0) + rank
print("all", util.all_gather(own, "all"), util.all_reduce(np.array([own, 1.5]), "sum", "all").tolist(),
      util.all_reduce(own, "max", "all"))
util.barrier("all")
if server:
    print("servers", util.all_gather(own, "server"), util.all_reduce([own, 2], comm_world="server").tolist())
    util.barrier(comm_world="server")
else:
    print("workers", util.all_gather(own), util.all_reduce(1, comm_world="worker"))
    util.barrier()
try:
    util.all_reduce(1, comm_world="worker" if server else "server")
except native.InvalidArgumentError as e:
    print("refused:", e)
util.barrier("all")
'''


@pytest.mark.parametrize("starter", ["fleetrun", "mpirun"])
def test_servers_and_workers_compute_together(tmp_path, starter):
    script, command = TOGETHER, "fleetrun --server_num=2 --worker_num=2 train.py"
    if starter == "mpirun":
        if shutil.which("mpirun") is None:
            pytest.skip("there is no mpirun")
        roles = "from paddle.distributed.fleet.base.role_maker import MPISymetricRoleMaker\nfleet.init(MPISymetricRoleMaker())"
        script = script.replace("fleet.init()", roles)
        command = MPIRUN
    (tmp_path / "train.py").write_text(script)
    result = documents.run(command, tmp_path, environment={"OMP_NUM_THREADS": "1"})
    logs = [p.read_text() for p in sorted((tmp_path / "log").glob("*log.*"))] if starter == "fleetrun" else [result.output]
    output = "".join(logs)
    assert result.code == 0, result.output + output
    assert output.count("all [0, 1, 100, 101] [202.0, 6.0] 101") == 4, output
    assert output.count("servers [100, 101] [201, 4]") == 2, output
    assert output.count("workers [0, 1] 2") == 2, output
    assert output.count("only workers compute together") == 2 and output.count("only servers call it") == 2, output


def test_server_groups_of_processes_started_by_hand_are_refused():
    script = ('import paddle\nfrom paddle.distributed import fleet\npaddle.enable_static()\n'
              'fleet.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.SERVER, worker_num=1, '
              'server_endpoints=["127.0.0.1:6171"]))\nfleet.util.barrier("server")\n')
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode != 0 and "start the job with fleetrun or mpirun" in result.stderr, result.stderr


def test_delay_compensation_is_for_async():
    from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig
    config = DistributeTranspilerConfig()
    config.enable_dc_asgd = True
    with pytest.raises(ValueError, match="sync_mode = False"):
        config.for_servers()
    config.sync_mode = False
    assert config.for_servers()["dc_asgd"] is True and config.for_servers()["mode"] == "async"
    config.geo_sgd_mode = True
    with pytest.raises(ValueError, match="the mode is geo"):
        config.for_servers()


def test_one_process_keeps_the_tables(tmp_path):
    """The same script without servers: ids far beyond the declared size, the same losses as with one; saved, loaded,
    and as a model."""
    served, first, last = trained(run(tmp_path, 1, 1, "--save", "served"))
    alone = documents.run("python train.py --save saved --model model", tmp_path, environment={"OMP_NUM_THREADS": "1"})
    assert alone.code == 0, alone.output
    assert numbers(alone.output, "loss") == served
    assert (numbers(alone.output, "first"), numbers(alone.output, "last")) == ([first], [last])
    # It goes on from what servers have saved, or itself, and servers from what it has.
    (tmp_path / "load.py").write_text(TRAIN.replace("        fleet.init_worker()\n    rank", """
        call = paddle.fluid.io.load_params if args.load == "served" else paddle.fluid.io.load_persistables
        call(exe, args.load)
        fleet.init_worker()
    rank"""))
    for command in ("python load.py --load served", "python load.py --load saved",
                    "fleetrun --server_num=2 --worker_num=1 load.py --load saved"):
        loaded = documents.run(command + " --steps 1", tmp_path, environment={"OMP_NUM_THREADS": "1"})
        output = loaded.output if command.startswith("python") else (tmp_path / "log" / "workerlog.0").read_text()
        assert loaded.code == 0 and numbers(output, "first") == [last], loaded.output + output
    (tmp_path / "serve.py").write_text('''
import numpy as np
import paddle
from paddle import static
paddle.enable_static()
exe = static.Executor(paddle.CPUPlace())
program, feeds, fetches = paddle.fluid.io.load_inference_model("model", exe)
ids = np.random.RandomState(1000).randint(0, 30, (24, 2))
out, = exe.run(program, feed={"ids": ids * 10 ** 15}, fetch_list=fetches)
print("served %.7f" % np.mean((out - ids[:, :1] % 4 * 0.25) ** 2))
''')
    model = documents.run("python serve.py", tmp_path)
    assert numbers(model.output, "served") == pytest.approx([last], rel=1e-4), model.output


def test_a_runtime_config_by_the_names_of_the_communicator():
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
    strategy = StrategyFactory.create_async_strategy()
    strategy.set_trainer_runtime_config({"communicator_send_queue_size": 8, "max_merge_var_num": 4})
    flags = strategy.get_trainer_runtime_config().get_communicator_flags()
    assert flags["communicator_send_queue_size"] == "8" and flags["communicator_max_merge_var_num"] == "4"
    with pytest.raises(AttributeError, match="no option"):
        strategy.set_trainer_runtime_config({"communicator_nothing": 1})
