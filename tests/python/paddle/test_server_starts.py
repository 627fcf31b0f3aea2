"""How jobs with parameter servers start, are looked at, load and end; the script is that of test_servers.py."""
import re
import socket
import subprocess
import sys

import numpy as np
import pytest

import documents
from test_servers import TRAIN, numbers, run, trained


def test_servers_come_to_their_end_after_the_last_worker(tmp_path):
    end = "    print(\"the server has ended\")\n"
    (tmp_path / "train.py").write_text("import time\n" + TRAIN.replace(end, "    time.sleep(0.4)\n" + end))
    result = documents.run("fleetrun --server_num=2 --worker_num=1 train.py", tmp_path, environment={"OMP_NUM_THREADS": "1"})
    assert result.code == 0 and "SIGTERM" not in result.output, result.output
    for number in range(2):
        assert "the server has ended" in (tmp_path / "log" / f"serverlog.{number}").read_text()


def test_staleness_holds_fast_workers_back(tmp_path):
    """The second worker sleeps in every step; the first one is at most two steps ahead."""
    slow = "        value, = exe.run(feed=feed, fetch_list=[loss])\n"
    script = TRAIN.replace("strategy.a_sync = args.mode != \"sync\"\n",
                           "strategy.a_sync = True\nstrategy.a_sync_configs = {\"staleness\": 2}\n")
    script = script.replace(slow, "        time.sleep(0.05 * rank)\n" + slow)
    script = re.sub(r"        mean = .*\n", "        mean = value\n", script)
    script = script.replace("    fleet.barrier_worker()\n", "    print(\"took %.2f\" % (time.time() - begin))\n    fleet.barrier_worker()\n")
    script = "import time\n" + script.replace("    for step in", "    begin = time.time()\n    for step in")
    (tmp_path / "train.py").write_text(script)
    result = documents.run("fleetrun --server_num=1 --worker_num=2 train.py", tmp_path, environment={"OMP_NUM_THREADS": "1"})
    first = (tmp_path / "log" / "workerlog.0").read_text()
    assert result.code == 0, result.output + first
    assert numbers(first, "took")[0] > 0.05 * 9, first


OTHER = '''
import sys
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet
paddle.enable_static()
fleet.init()
alone = not fleet.is_server() and fleet.worker_index() == 1
x = static.data("x", [4 if alone else None, 4], "float32")
h = static.nn.fc(x, 4, activation="tanh" if alone and sys.argv[1] == "other" else "relu")
if alone:
    static.Print(h)
loss = paddle.mean(static.nn.fc(paddle.nn.functional.dropout(h), 1))
test = static.default_main_program().clone(for_test=True) if alone else None
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
exe = static.Executor()
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe.run(static.default_startup_program())
    fleet.init_worker()
    exe.run(feed={"x": np.ones((4, 4), "float32")}, fetch_list=[loss])
    fleet.stop_worker()
'''


@pytest.mark.parametrize("program", ["same", "other"])
def test_a_worker_that_computes_another_loss_is_refused(tmp_path, program):
    """Parameters and optimizer are the same. Batch size, a test program and what else is computed may differ."""
    (tmp_path / "train.py").write_text(OTHER)
    result = documents.run(f"fleetrun --server_num=1 --worker_num=2 train.py {program}", tmp_path,
                           environment={"OMP_NUM_THREADS": "1"})
    if program == "same":
        assert result.code == 0, result.output
        return
    log = (tmp_path / "log" / "workerlog.1").read_text()
    assert result.code != 0, result.output
    assert "worker 1 runs another program" in log and "server: computes relu\nworker: computes tanh" in log, log
    server = (tmp_path / "log" / "serverlog.0").read_text()
    assert "worker 1 runs another program" in server and "worker: computes tanh" in server, server


def test_tables_of_servers_become_parameters_of_one_process(tmp_path):
    """As scripts of 1.x test what servers have saved: fluid.io.load_persistables, without fleet."""
    import paddle
    import paddle.fluid as fluid
    saved = tmp_path / "saved"
    trained(run(tmp_path, 2, 2, "--save", str(saved)))
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        ids = paddle.static.data("ids", [None, 2], "int64")
        rows = paddle.static.nn.embedding(ids, [10, 4], param_attr=paddle.ParamAttr(name="table"))
        out = paddle.static.nn.fc(paddle.reshape(rows, [-1, 8]), 8, weight_attr=paddle.ParamAttr(name="w"),
                                  bias_attr=False)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(saved), main_program=program)
        table = np.array(fluid.global_scope().find_var("table").get_tensor())
        exe.run(program, feed={"ids": np.zeros((3, 2), "int64")}, fetch_list=[out])
    assert np.all(np.abs(table[0] - 0.1) > 1e-4) and not table[1:].any()  # of the trained ids, 0 is the only one below 10
    with pytest.raises(paddle.InvalidArgumentError, match="rows of 4 values, the parameter 3"):
        with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
            paddle.static.nn.embedding(paddle.static.data("ids", [None], "int64"), [10, 3],
                                       param_attr=paddle.ParamAttr(name="table"))
            fluid.io.load_persistables(exe, str(saved))


def test_servers_that_fleetrun_has_started_are_looked_at(tmp_path):
    look = ("subprocess.run(['fleetx', 'ps', ','.join(fleet.server_endpoints()), '--log_dir', 'log'], check=True, "
            "env={k: v for k, v in os.environ.items() if k != 'FLEETX_JOB_SECRET'})")
    end = "    fleet.barrier_worker()\n"
    (tmp_path / "train.py").write_text(
        "import subprocess\n" + TRAIN.replace(end, end + f"    if rank == 0:\n        {look}\n" + end))
    result = documents.run("fleetrun --server_num=2 --worker_num=2 train.py", tmp_path, environment={"OMP_NUM_THREADS": "1"})
    output = (tmp_path / "log" / "workerlog.0").read_text()
    assert result.code == 0, result.output + output
    assert "server 0 of 2, up" in output and "server 1 of 2, up" in output and "workers are 0 pushes apart" in output, output
    assert not (tmp_path / "log" / "secret").exists()


def test_a_list_of_servers_that_differs_is_named(tmp_path):
    """In processes that are started by hand, whose secret follows from it."""
    script = ('import sys\nimport paddle\nfrom paddle import static\nfrom paddle.distributed import fleet\n'
              'paddle.enable_static()\n'
              'roles = {"server": fleet.Role.SERVER, "worker": fleet.Role.WORKER}\n'
              'fleet.init(fleet.UserDefinedRoleMaker(current_id=0, role=roles[sys.argv[1]], worker_num=1, '
              'server_endpoints=sys.argv[2].split(",")))\n'
              'loss = paddle.mean(static.nn.fc(static.data("x", [None, 2]), 1))\n'
              'strategy = fleet.DistributedStrategy()\nstrategy.a_sync = True\n'
              'fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)\n'
              'if fleet.is_server():\n    fleet.init_server()\n    print("listens", flush=True)\n    fleet.run_server()\n'
              'exe = static.Executor()\nexe.run(static.default_startup_program())\nfleet.init_worker()\n')
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    own, other = f"127.0.0.1:{port}", f"127.0.0.1:{port},127.0.0.1:6199"
    server = subprocess.Popen([sys.executable, "-c", script, "server", own], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "listens\n"
        worker = subprocess.run([sys.executable, "-c", script, "worker", other], capture_output=True, text=True, timeout=60)
        seen = subprocess.run(["fleetx", "ps", own], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    finally:
        server.kill()
        server.wait()
    assert worker.returncode != 0 and f"follows from the list of servers, here {other}" in worker.stderr, worker.stderr
    assert seen.stdout.startswith("server 0 of 1"), seen.stdout + seen.stderr


def test_a_server_loads_variables_after_init_server(tmp_path):
    """As servers of 1.x did."""
    _, _, last = trained(run(tmp_path, 1, 1, "--save", str(tmp_path / "saved")))
    warm = ("    fleet.init_server()\n    import paddle.fluid as fluid\n"
            f"    fluid.io.load_vars(exe, {str(tmp_path / 'saved')!r}, predicate=lambda v: v.name in ('w', 'table'))\n")
    script = TRAIN.replace("    fleet.init_server(args.load)\n", warm)
    assert script != TRAIN
    (tmp_path / "train.py").write_text(script)
    result = documents.run("fleetrun --server_num=2 --worker_num=1 train.py --steps=0", tmp_path,
                           environment={"OMP_NUM_THREADS": "1"})
    first = (tmp_path / "log" / "workerlog.0").read_text()
    assert result.code == 0 and numbers(first, "first") == pytest.approx([last], rel=1e-5), result.output + first


def test_a_server_does_not_load_into_its_scope(tmp_path):
    """It would be lost in silence."""
    script = ('import paddle.fluid as fluid\n'
              'from paddle.fluid.incubate.fleet.base.role_maker import Role, UserDefinedRoleMaker\n'
              'from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet\n'
              'fleet.init(UserDefinedRoleMaker(0, Role.SERVER, 1, ["127.0.0.1:6171"]))\n'
              'loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr="w"))\n'
              'fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)\n'
              'exe = fluid.Executor()\n'
              'fluid.io.load_vars(exe, ".", fleet.startup_program, predicate=lambda v: False)\n'
              'fluid.io.load_vars(exe, ".", fleet.startup_program, predicate=lambda v: v.name == "w")\n')
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode != 0 and "would not serve 'w'" in result.stderr, result.stderr


def test_a_server_that_cannot_load_frees_its_port(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    script = ('import socket\n'
              'import paddle.fluid as fluid\n'
              'from paddle.fluid.incubate.fleet.base.role_maker import Role, UserDefinedRoleMaker\n'
              'from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet\n'
              f'fleet.init(UserDefinedRoleMaker(0, Role.SERVER, 1, ["127.0.0.1:{port}"]))\n'
              'loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr="w"))\n'
              'fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)\n'
              'try:\n    fleet.init_server("nothing")\nexcept Exception as e:\n    print(e)\n'
              f'with socket.socket() as s:\n    s.bind(("127.0.0.1", {port}))\n'
              'fleet.init_server()\nprint("listens")\n')
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert "nothing" in result.stdout and "listens" in result.stdout, result.stdout + result.stderr


def test_settings_of_a_communicator_may_be_overridden():
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import TrainerRuntimeConfig
    from paddle.fluid.transpiler.distribute_transpiler import DistributedMode
    assert (DistributedMode.SYNC, DistributedMode.GEO) == (0, 3)
    config = TrainerRuntimeConfig()
    config.send_queue_size = 8
    assert config.get_communicator_flags()["communicator_send_queue_size"] == "8"
