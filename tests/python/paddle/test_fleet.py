"""Several workers, started by fleetrun."""
import copy
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import documents
import paddle
from paddle.distributed import fleet

TRAIN = '''
import sys
import textwrap
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

paddle.enable_static()
x, y = static.data("x", [None, 6], "float32"), static.data("y", [None, 1], "int64")
h = static.nn.fc(x, 8, activation="tanh")
loss = paddle.nn.functional.cross_entropy(static.nn.fc(h, 3), y)
strategy = fleet.DistributedStrategy()
fleet.init(is_collective=True, strategy=strategy)
optimizer = fleet.distributed_optimizer(paddle.optimizer.Momentum(0.1, 0.9))
optimizer.minimize(loss)
exe = static.Executor(paddle.CUDAPlace(0))
exe.run(static.default_startup_program())
rng = np.random.RandomState(7)
rank, size = fleet.worker_index(), fleet.worker_num()
for step in range(5):
    image, label = rng.randn(8, 6).astype("float32"), rng.randint(0, 3, (8, 1))
    part = slice(rank * 8 // size, (rank + 1) * 8 // size)
    value, = exe.run(feed={"x": image[part], "y": label[part]}, fetch_list=[loss])
    mean = fleet.util.all_reduce(float(value)) / size
    if rank == 0:
        print("step %d loss %.6f" % (step, mean), flush=True)
'''


def losses(result):
    assert result.code == 0, result.output
    return [float(v) for v in re.findall(r"step \d loss (\S+)", result.output)]


def test_workers_that_share_a_batch_learn_like_one(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    alone = losses(documents.run([sys.executable, "train.py"], tmp_path))
    assert len(alone) == 5
    for workers in (2, 4):
        together = losses(documents.run(f"fleetrun --nproc_per_node={workers} train.py", tmp_path))
        np.testing.assert_allclose(together, alone, rtol=2e-5)


def test_launch_module_is_fleetrun(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    result = documents.run([sys.executable, "-m", "paddle.distributed.launch", "--gpus=0,1", "train.py"], tmp_path)
    assert len(losses(result)) == 5 and "Configuration Arguments" in result.output


def test_host_collectives_and_metrics(tmp_path):
    (tmp_path / "a.py").write_text('''
import numpy as np
import paddle
import paddle.distributed as dist
from paddle.distributed import fleet
fleet.init(is_collective=True)
rank = fleet.worker_index()
assert (dist.get_rank(), dist.get_world_size()) == (rank, 2) and len(fleet.worker_endpoints()) == 2
assert fleet.is_first_worker() == (rank == 0) and fleet.is_worker() and not fleet.is_server()
a = np.array([[1.0, 2.0]], "float32") * (rank + 1)
dist.all_reduce(a)
assert a.tolist() == [[3.0, 6.0]], a
b = np.array([rank], "int64")
dist.broadcast(b, 1)
assert b.tolist() == [1]
got = []
dist.all_gather(got, np.array([rank, 5], "int64"))
assert [g.tolist() for g in got] == [[0, 5], [1, 5]]
assert fleet.util.all_reduce(rank + 1, "max") == 2 and fleet.util.all_gather(rank) == [0, 1]
assert fleet.util.get_file_shard(["a", "b", "c"]) == (["a", "b"] if rank == 0 else ["c"])
pos, neg = np.array([0, 1, 3]), np.array([3, 1, 0])
assert abs(fleet.metrics.auc(pos, neg) - 0.96875) < 1e-9
assert fleet.metrics.acc(np.array([rank + 1.0]), np.array([2.0])) == 0.75
fleet.barrier_worker()
fleet.util.print_on_rank("all is well", 0)
''')
    result = documents.run("fleetrun --gpus=0,1 a.py", tmp_path)
    assert result.code == 0 and "all is well" in result.output, result.output


def test_a_workers_error_shows_its_line(tmp_path):
    (tmp_path / "a.py").write_text('''
import paddle
from paddle import static
from paddle.distributed import fleet
fleet.init(is_collective=True)
x = static.data("x", [None, 3], "float32")
w = static.data("w", [5, 2], "float32")
if fleet.worker_index() == 1:
    paddle.matmul(x, w)  # wrong
fleet.barrier_worker()
''')
    result = documents.run("fleetrun --gpus=0,1 a.py", tmp_path)
    assert result.code != 0 and "a.py:9: matmul" in result.output and "[-1,3]" in result.output, result.output


# ---- one process ----
@pytest.mark.parametrize("call", ["fleet.barrier_worker()", "fleet.util.all_reduce(np.ones(3))",
                                  "exe.run(feed={'x': np.ones((2, 3), 'float32')}, fetch_list=[loss])"])
def test_ctrl_c_ends_a_worker_that_waits_for_another(tmp_path, call):
    (tmp_path / "a.py").write_text(textwrap.dedent(f"""
        import os, signal, threading, time
        import numpy as np, paddle
        import paddle.distributed.fleet as fleet
        from paddle import static
        paddle.enable_static()
        fleet.init(is_collective=True)
        loss = paddle.mean(static.nn.fc(static.data("x", [None, 3], "float32"), 2))
        fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
        exe = static.Executor()
        exe.run(static.default_startup_program())
        fleet.barrier_worker()
        if fleet.worker_index() == 1:
            time.sleep(60)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.time()
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted after %.1f s" % (time.time() - begin), flush=True)
            raise
    """))
    result = documents.run("fleetrun --nproc_per_node=2 a.py", tmp_path, timeout=60)
    seconds = re.search(r"interrupted after (.*) s", result.output)
    assert seconds and float(seconds.group(1)) < 2 and result.seconds < 20, result.output
    assert "KeyboardInterrupt" in result.output and result.code != 0


def test_strategy_fields():
    strategy = fleet.DistributedStrategy()
    strategy.recompute, strategy.recompute_configs = True, {"checkpoints": ["a", "b"]}
    strategy.fuse_grad_size_in_MB, strategy._fuse_grad_size_in_TFLOPS = 16, 20
    assert strategy.recompute and strategy.recompute_configs["checkpoints"] == ["a", "b"]
    assert strategy.fuse_grad_size_in_MB == 16 and not strategy.amp and strategy.amp_configs["decr_ratio"] == 0.8
    build = paddle.static.BuildStrategy()
    build.fuse_bn_act_ops = True
    strategy.build_strategy = build
    assert strategy.build_strategy.fuse_bn_act_ops
    assert "DistributedStrategy Overview" in str(strategy)
    with pytest.raises(TypeError, match="no 'colour'"):
        strategy.colour = True
    with pytest.raises(AssertionError, match="no hue"):
        strategy.lars_configs = {"hue": 1}
    with pytest.raises(ValueError):
        strategy.amp = "yes"


def test_a_strategy_is_saved_and_loaded(tmp_path):
    strategy, other = fleet.DistributedStrategy(), fleet.DistributedStrategy()
    strategy.lars, strategy.lars_configs = True, {"lars_coeff": 0.01}
    strategy.save_to_prototxt(str(tmp_path / "s.prototxt"))
    other.load_from_prototxt(str(tmp_path / "s.prototxt"))
    assert other == strategy


def test_functions_need_init():
    script = "from paddle.distributed import fleet; fleet.worker_index()"
    got = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "call fleet.init" in got.stderr


def test_calls_for_servers_warn_in_a_job_without(tmp_path):
    (tmp_path / "a.py").write_text(textwrap.dedent("""
        import warnings
        import paddle
        import paddle.distributed.fleet as fleet
        from paddle import static
        warnings.simplefilter("error")
        fleet.init(is_collective=True)
        for call in (fleet.init_worker, fleet.stop_worker, fleet.init_server, fleet.run_server):
            try:
                call()
            except UserWarning as warning:
                print(warning)
        loss = paddle.mean(static.nn.fc(static.data("x", [None, 3], "float32"), 2))
        fleet.distributed_optimizer(paddle.optimizer.SGD(0.1))
        fleet.minimize(loss)
        print(fleet._get_applied_meta_list(), fleet.get_lr(), fleet._final_strategy().amp)
    """))
    result = documents.run("fleetrun --gpus=0,1 a.py", tmp_path)
    assert result.output.count("this job has no servers; nothing is done") == 4, result.output
    assert "['data_parallel'" in result.output and "] 0.1 False" in result.output, result.output


def test_collectives_inside_a_program(tmp_path):
    (tmp_path / "a.py").write_text(textwrap.dedent("""
        import numpy as np, paddle
        import paddle.distributed as dist
        from paddle import static
        paddle.enable_static()
        dist.init_parallel_env()
        x = static.data("x", [None, 2], "float32")
        every = []
        dist.all_gather(every, x)
        first = paddle.assign(x)
        dist.broadcast(first, src=1)
        total = x
        dist.all_reduce(total)
        feed = {"x": np.full((1, 2), 3 + 4 * dist.get_rank(), "float32")}
        print([v.tolist() for v in static.Executor().run(feed=feed, fetch_list=[*every, first, total])], flush=True)
    """))
    result = documents.run("fleetrun --nproc_per_node=2 a.py", tmp_path)
    assert "[[[3.0, 3.0]], [[7.0, 7.0]], [[7.0, 7.0]], [[10.0, 10.0]]]" in result.output, result.output


# The gradient is that of the sum of what both workers lose. Worker r has x = r + 1 and loses (r + 1) * y * y.
@pytest.mark.parametrize("call, expected", [
    ("dist.all_reduce(v); y = v", [2 * 9 * 3 * 1, 2 * 9 * 3 * 2]), ("dist.broadcast(v, 1); y = v", [0, 2 * 6 * 3 * 2]),
    ("dist.all_gather(parts, v); y = paddle.concat(parts)", [2 * 3 * 3 * 1, 2 * 6 * 3 * 2]),
    ("block.append_op('c_allreduce_sum', {'X': v}, {'Out': y}, {'ring_id': 0})", [2 * 9 * 3 * 1, 2 * 9 * 3 * 2]),
    ("block.append_op('c_allgather', {'X': v}, {'Out': y}, {'nranks': 2})", [2 * 3 * 3 * 1, 2 * 6 * 3 * 2])])
def test_gradients_of_collectives_inside_a_program(tmp_path, call, expected):
    (tmp_path / "a.py").write_text(textwrap.dedent(f"""
        import numpy as np, paddle
        import paddle.distributed as dist
        from paddle import static
        paddle.enable_static()
        dist.init_parallel_env()
        x = static.data("x", [None, 1], "float32")
        w = static.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(3.0))
        block = static.default_main_program().global_block()
        v, parts, y = x * w, [], block.create_var(name="y", dtype="float32")
        {call}
        loss = paddle.sum(paddle.square(y)) * (dist.get_rank() + 1.0)
        gradient, = static.gradients([loss], [w])
        exe = static.Executor()
        exe.run(static.default_startup_program())
        feed = {{"x": np.full((1, 1), dist.get_rank() + 1, "float32")}}
        print("gradient", dist.get_rank(), float(exe.run(feed=feed, fetch_list=[gradient])[0]), flush=True)
    """))
    result = documents.run("fleetrun --nproc_per_node=2 --log_dir log a.py", tmp_path)
    logs = "".join((tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(2))
    found = dict(re.findall(r"gradient (\d) (\S+)", logs))
    assert found == {str(rank): str(float(value)) for rank, value in enumerate(expected)}, result.output + logs


def test_role_makers():
    role = fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=3,
                                      server_endpoints=["127.0.0.1:6001", "127.0.0.1:6002"])
    assert role.worker_num() == 3 and role.is_worker() and role.server_num() == 2
    with pytest.raises(ValueError, match="fleet.init"):
        fleet.init_server()


def test_collective_training_of_1_x(tmp_path):
    (tmp_path / "a.py").write_text('''
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.collective import fleet, DistributedStrategy
fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
x = fluid.layers.data(name="x", shape=[4], dtype="float32")
loss = fluid.layers.mean(fluid.layers.fc(input=x, size=2))
strategy = DistributedStrategy()
strategy.exec_strategy = fluid.ExecutionStrategy()
strategy.fuse_bn_act_ops = True
strategy.nccl_comm_num = 2
strategy.mode, strategy.collective_mode = "collective", "grad_allreduce"
assert strategy.fuse_bn_act_ops and strategy.nccl_comm_num == 2 and not strategy.forward_recompute
optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(learning_rate=0.1), strategy=strategy)
optimizer.minimize(loss, fluid.default_startup_program())
exe = fluid.Executor(fluid.CUDAPlace(0))
exe.run(fleet.startup_program)
exe.run(fleet.main_program, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])
fleet.save_persistables(exe, "saved")
print("trained by", fleet.worker_index())
''')
    result = documents.run("fleetrun --gpus=0,1 a.py", tmp_path)
    assert result.code == 0 and "trained by 0" in result.output, result.output
    assert (tmp_path / "saved" / "fc_0.w_0").exists()


def test_a_job_without_servers_is_one_worker(tmp_path):
    (tmp_path / "a.py").write_text('''
import paddle
from paddle.distributed import fleet
fleet.init()
assert fleet.is_worker() and fleet.worker_num() == 1 and not fleet.is_server()
''')
    result = documents.run([sys.executable, "a.py"], tmp_path)
    assert result.code == 0, result.output


def test_the_program_of_1_x_is_the_one_that_minimize_changed(tmp_path):
    (tmp_path / "a.py").write_text('''
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.collective import fleet
fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
assert fleet.main_program is fluid.default_main_program()
main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup):
    x = fluid.layers.data(name="x", shape=[4], dtype="float32")
    loss = fluid.layers.mean(fluid.layers.fc(input=x, size=2))
    fleet.distributed_optimizer(fluid.optimizer.SGD(learning_rate=0.1)).minimize(loss, startup)
assert fleet.main_program is main and fleet.startup_program is startup
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fleet.startup_program)
first, = exe.run(fleet.main_program, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss.name])
second, = exe.run(fleet.main_program, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss.name])
assert second < first, (first, second)
''')
    result = documents.run([sys.executable, "a.py"], tmp_path)
    assert result.code == 0, result.output


# ---- other launchers ----
def free_ports(count):
    import socket
    held = [socket.socket() for _ in range(count)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def start_by_endpoints(script, folder, workers=2):
    """As a launcher does that sets the PADDLE_* variables and nothing else."""
    import os
    endpoints = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    others = {name: value for name, value in os.environ.items() if not name.startswith(("FLEETX_", "PADDLE_"))}
    processes = []
    for rank, endpoint in enumerate(endpoints):
        said = {"PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": str(workers), "PADDLE_CURRENT_ENDPOINT": endpoint,
                "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints)}
        processes.append(subprocess.Popen([sys.executable, script], cwd=folder, env={**others, **said}, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    return [(p.communicate(timeout=120)[0], p.returncode) for p in processes]


def test_workers_of_another_launcher_meet_at_their_endpoints(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    alone = losses(documents.run([sys.executable, "train.py"], tmp_path))
    results = start_by_endpoints("train.py", tmp_path)
    assert [code for _, code in results] == [0, 0], results
    together = [float(v) for v in re.findall(r"step \d loss (\S+)", results[0][0])]
    np.testing.assert_allclose(together, alone, rtol=2e-5)


def test_a_user_defined_role_agrees_with_the_endpoints_of_the_launcher(tmp_path):
    (tmp_path / "a.py").write_text('''
import os
import numpy as np
import paddle
from paddle.distributed import fleet
role = fleet.UserDefinedRoleMaker(current_id=int(os.environ["PADDLE_TRAINER_ID"]), is_collective=True,
                                  worker_endpoints=os.environ["PADDLE_TRAINER_ENDPOINTS"].split(","))
fleet.init(role)
print("sum", fleet.util.all_reduce(np.array([fleet.worker_index() + 1]))[0])
''')
    results = start_by_endpoints("a.py", tmp_path)
    assert all(code == 0 and "sum 3" in output for output, code in results), results


# ---- batch norm over all workers ----
SYNC = '''
import sys
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

paddle.enable_static()
how = sys.argv[1]
x = static.data("x", [None, 3, 4, 4], "float32")
y = static.nn.batch_norm(static.nn.conv2d(x, 2, 3))
loss = paddle.mean(y * y * y)
fleet.init(is_collective=True)
optimizer, strategy = paddle.optimizer.SGD(0.1), fleet.DistributedStrategy()
build = static.BuildStrategy()
build.sync_batch_norm = how != "off"
if how == "group":
    strategy.build_strategy = build
if how != "alone":
    optimizer = fleet.distributed_optimizer(optimizer, strategy)
optimizer.minimize(loss)
program = static.default_main_program()
if how == "constructor":
    program = static.CompiledProgram(program, build)
elif how in ("data_parallel", "alone", "off"):
    program = static.CompiledProgram(program).with_data_parallel(loss.name, build)
exe = static.Executor()
exe.run(static.default_startup_program())
rng = np.random.RandomState(3)
rank, size = fleet.worker_index(), fleet.worker_num()
for step in range(3):
    image = rng.randn(8, 3, 4, 4).astype("float32")
    value, = exe.run(program, feed={"x": image[rank * 8 // size:(rank + 1) * 8 // size]}, fetch_list=[loss])
    mean = fleet.util.all_reduce(float(value)) / size
    if rank == 0:
        print("step %d loss %.6f" % (step, mean), flush=True)
'''


def test_build_strategy_sync_batch_norm(tmp_path):
    (tmp_path / "a.py").write_text(SYNC)
    alone = losses(documents.run([sys.executable, "a.py", "data_parallel"], tmp_path))  # one worker: nothing to change
    off = losses(documents.run("fleetrun --nproc_per_node=2 a.py off", tmp_path))
    assert not np.allclose(off, alone, rtol=1e-3)
    for how in ("constructor", "data_parallel", "group"):
        np.testing.assert_allclose(losses(documents.run(f"fleetrun --nproc_per_node=2 a.py {how}", tmp_path)), alone,
                                   rtol=1e-4, atol=2e-6, err_msg=how)  # six digits are printed
    refused = documents.run("fleetrun --nproc_per_node=2 a.py alone", tmp_path)
    assert refused.code != 0 and "sync_batch_norm" in refused.output and "distributed_optimizer" in refused.output


def test_settings_of_the_originals_servers():
    strategy = fleet.DistributedStrategy()
    assert strategy.fs_client_param == {} and strategy.sparse_table_configs == {} and strategy.adam_d2sum is False
    strategy.fs_client_param = {"uri": "", "user": "", "passwd": "", "hadoop_bin": "hadoop"}
    strategy.sparse_table_configs = {}
    strategy.adam_d2sum = True
    assert copy.deepcopy(strategy).adam_d2sum is True
    with pytest.raises(NotImplementedError, match="fs_client_param.*HDFSClient"):
        strategy.fs_client_param = {"uri": "afs://x"}
    with pytest.raises(NotImplementedError, match="sparse_table_configs.*sparse_embedding"):
        strategy.sparse_table_configs = {"embedding": {"table_parameters.embedding.shard_num": 1}}
    with pytest.raises(ValueError, match="adam_d2sum takes a bool"):
        strategy.adam_d2sum = 1


def test_what_was_applied_before_there_is_an_optimizer(monkeypatch):
    monkeypatch.setattr("paddle.distributed.fleet.api._optimizer", None)
    with pytest.warns(UserWarning, match="distributed_optimizer"):
        assert fleet._final_strategy() == {}
    with pytest.warns(UserWarning, match="minimize"):
        assert fleet._get_applied_meta_list() == []


def test_settings_of_what_is_off_are_not_used():
    fleet.init(is_collective=True)
    x = paddle.static.data("x", [None, 4], "float32")
    loss = paddle.mean(paddle.static.nn.fc(x, 2))
    strategy = fleet.DistributedStrategy()
    strategy.lamb, strategy.lamb_configs = False, {"lamb_weight_decay": 0.02}
    strategy.amp_configs = {"init_loss_scaling": 128.0, "use_pure_fp16": True}
    strategy.gradient_merge, strategy.gradient_merge_configs = True, {"k_steps": 2}
    with pytest.warns(UserWarning) as told:
        fleet.distributed_optimizer(paddle.optimizer.Adam(0.1), strategy).minimize(loss)
    texts = [str(w.message) for w in told if "is off" in str(w.message)]
    assert len(texts) == 2 and "amp_configs: init_loss_scaling, use_pure_fp16 set, but amp is off" in texts[0]
    assert "lamb_configs: lamb_weight_decay set" in texts[1] and strategy.lamb_configs["lamb_weight_decay"] == 0.02
    assert fleet._final_strategy().gradient_merge_configs["k_steps"] == 2


def test_a_strategy_of_1_x_takes_any_attribute():
    from paddle.fluid.incubate.fleet.collective import DistributedStrategy
    strategy = DistributedStrategy()
    strategy.fuse_memory_size, strategy.use_local_sgd = 64, True
    assert strategy.fuse_grad_size_in_MB == 64 and strategy.localsgd
    with pytest.warns(UserWarning, match="local_sgd_is_warm_steps is not used"):
        strategy.local_sgd_is_warm_steps = 30
    assert strategy.local_sgd_is_warm_steps == 30


def test_the_place_of_a_worker_in_the_mesh():
    from paddle.distributed.fleet import HybridCommunicateGroup
    degrees = {"mp_degree": 2, "pp_degree": 2, "sharding_degree": 2, "dp_degree": -1}
    groups = [HybridCommunicateGroup(rank, 16, degrees) for rank in range(16)]
    places = [(g.get_stage_id(), g.get_data_parallel_rank(), g.get_sharding_parallel_rank(), g.get_model_parallel_rank()) for g in groups]
    assert places == sorted(places) and len(set(places)) == 16 and groups[0].get_data_parallel_world_size() == 2
    assert groups[7].is_first_stage and not groups[7].is_last_stage and groups[15].is_last_stage
    with pytest.raises(NotImplementedError, match="hybrid_configs"):
        groups[0].get_model_parallel_group()
    with pytest.raises(ValueError, match="are not the 12 workers"):
        HybridCommunicateGroup(0, 12, {**degrees, "dp_degree": 2})
    fleet.init(is_collective=True)
    assert fleet.get_hybrid_communicate_group().get_pipe_parallel_world_size() == 1
