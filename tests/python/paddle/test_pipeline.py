"""pipeline through paddle.distributed.fleet: real workers, saved and resumed with other numbers of stages."""
import re
import sys

import numpy as np
import pytest

import documents
import paddle
from paddle import fluid, static
from paddle.distributed import fleet

TRAIN = '''
import sys
import numpy as np
import paddle
from paddle import fluid, static
from paddle.distributed import fleet

settings, guarded, folder, first, last = sys.argv[1], sys.argv[2] == "guarded", sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
paddle.enable_static()
paddle.seed(3)

def device(number):
    return static.device_guard(f"gpu:{number}" if guarded else None)

with device(0):
    x, y = static.data("x", [None, 16], "float32"), static.data("y", [None, 1], "int64")
    h = static.nn.fc(x, 40, activation="tanh")
with device(1):
    h = static.nn.fc(h, 24, activation="relu")
    logits = static.nn.fc(h, 3)
    loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, y))
    accuracy = static.accuracy(paddle.nn.functional.softmax(logits), y)
strategy = fleet.DistributedStrategy()
strategy.pipeline = True
strategy.pipeline_configs = {"accumulate_steps": 4}
for name, value in eval(settings).items():
    setattr(strategy, name, value)
fleet.init(is_collective=True, strategy=strategy)
clip = paddle.nn.ClipGradByGlobalNorm(1.0)
fleet.distributed_optimizer(paddle.optimizer.Adam(0.01, grad_clip=clip), strategy).minimize(loss)
test = static.default_main_program().clone(for_test=True)
exe = static.Executor()
exe.run(static.default_startup_program())
if first:
    fluid.io.load_persistables(exe, folder, static.default_main_program())
def batch_of(step):
    rng = np.random.RandomState(step)
    image, label = rng.randn(16, 16).astype("float32"), rng.randint(0, 3, (16, 1))
    return {"x": (image + label).astype("float32"), "y": label}
for step in range(first, last):
    value, share = exe.run(feed=batch_of(step), fetch_list=[loss, accuracy])
    print("step %d loss %.9g accuracy %.9g" % (step, float(value), float(share)), flush=True)
value, = exe.run(test, feed=batch_of(100), fetch_list=[loss.name])
if folder != "none":
    fleet.save_persistables(exe, folder, static.default_main_program())
print("step test loss %.9g" % float(value), flush=True)
'''


def train(tmp_path, workers, settings={}, guarded=True, folder="none", first=0, last=5, text=TRAIN):
    (tmp_path / "train.py").write_text(text)
    arguments = ["train.py", repr(settings), "guarded" if guarded else "plain", str(folder), str(first), str(last)]
    start = ["fleetrun", "--gpus=" + ",".join(map(str, range(workers)))] if workers > 1 else [sys.executable]
    result = documents.run(start + arguments, tmp_path)
    assert result.code == 0, result.output
    return [float(v) for v in re.findall(r"(?:loss|accuracy) (\S+)", result.output)], result.output


def test_stages_by_device_guards(tmp_path):
    alone, _ = train(tmp_path, 1)
    staged, output = train(tmp_path, 2)
    assert "4 micro-batches, 1F1B; stage 0: " in output
    np.testing.assert_allclose(staged, alone, rtol=1e-5)


@pytest.mark.parametrize("clip", ["ClipGradByNorm(0.05)", "ClipGradByValue(0.01)"])
def test_gradients_that_are_clipped_by_themselves(tmp_path, clip):
    text = TRAIN.replace("ClipGradByGlobalNorm(1.0)", clip)
    alone, _ = train(tmp_path, 1, text=text)
    staged, _ = train(tmp_path, 2, text=text)
    np.testing.assert_allclose(staged, alone, rtol=1e-5)


def test_stages_by_the_framework(tmp_path):
    settings = {"hybrid_configs": {"pp_degree": 2}, "pipeline_configs": {"micro_batch": 4, "schedule_mode": "F-then-B"}}
    alone, _ = train(tmp_path, 1)
    staged, output = train(tmp_path, 2, settings, guarded=False)
    assert "F-then-B; stage 0: " in output and "; stage 1: " in output
    np.testing.assert_allclose(staged, alone, rtol=1e-5)


def test_what_stages_have_saved_one_worker_loads(tmp_path):
    whole, _ = train(tmp_path, 1)
    for first, second in ((2, 1), (1, 2)):
        train(tmp_path, first, folder=tmp_path / "saved", last=3)
        rest, _ = train(tmp_path, second, folder=tmp_path / "saved", first=3)
        np.testing.assert_allclose(rest, whole[6:], rtol=1e-4)


def test_a_schedule_that_the_program_computes(tmp_path):
    text = TRAIN.replace("Adam(0.01", "Adam(fluid.layers.noam_decay(16, 4)")
    plain, _ = train(tmp_path, 1, {"pipeline": False}, text=text)
    staged, _ = train(tmp_path, 2, text=text)
    np.testing.assert_allclose(staged, plain, rtol=1e-5)


def test_workers_that_are_fed_batches_of_different_sizes(tmp_path):
    text = TRAIN.replace("(16, 16)", "(16 + 4 * fleet.worker_index(), 16)").replace("(16, 1)", "(16 + 4 * fleet.worker_index(), 1)")
    (tmp_path / "train.py").write_text(text)
    result = documents.run(["fleetrun", "--nproc_per_node=2", "train.py", "{}", "guarded", "none", "0", "1"], tmp_path)
    assert result.code != 0
    assert "were both ranks fed batches of the same size?" in result.output, result.output


# Segments are smaller than a stage: what backward of a micro-batch has gathered, forward of the next one reads.
def test_a_clone_for_testing_gathers_what_sharding_has_divided(tmp_path):
    settings = {"sharding": True, "sharding_configs": {"stage": 3, "segment_broadcast_MB": 0.0001},
                "hybrid_configs": {"pp_degree": 2, "sharding_degree": 2}}
    alone, _ = train(tmp_path, 1)
    staged, _ = train(tmp_path, 4, settings)
    np.testing.assert_allclose(staged, alone, rtol=1e-5)


def stages_of(device):
    main = static.Program()
    with static.program_guard(main, static.Program()), static.device_guard(device):
        static.nn.fc(static.data("x", [None, 4]), 2)
    return set(re.findall(r" on (\d+)", str(main)))


@pytest.mark.parametrize("device, stages", [("gpu:1", {"1"}), ("cpu:0", {"0"}), ("gpu", set()), ("cpu", set()), (None, set()),
                                            ("gpu:all", set())])
def test_device_guard(device, stages):
    assert stages_of(device) == stages


@pytest.mark.parametrize("device", ["gpu:x", "gpu:-1", "tpu"])
def test_unknown_device(device):
    with pytest.raises(ValueError, match="there is no device"):
        static.device_guard(device)


def network(stages=2):
    h = static.data("x", [None, 4])
    for stage in range(stages):
        with static.device_guard(f"gpu:{stage}"):
            h = static.nn.fc(h, 4)
    with static.device_guard(f"gpu:{stages - 1}"):
        return paddle.mean(h)


def test_one_worker_computes_all_stages():
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = network()
        fluid.optimizer.PipelineOptimizer(fluid.optimizer.SGD(0.1), num_microbatches=2).minimize(loss)
    exe = static.Executor()
    exe.run(startup)
    value, = exe.run(main, feed={"x": np.ones((4, 4), "float32")}, fetch_list=[loss])
    assert np.isfinite(value).all()
    with pytest.raises(ValueError, match=r"cannot be cut into 2 equal parts, the micro-batches of a pipeline; feed a number of rows "
                       r"that 2 divides \(2 or 4\)"):
        exe.run(main, feed={"x": np.ones((3, 4), "float32")}, fetch_list=[loss])


@pytest.mark.parametrize("settings, error", [
    ({"pipeline": True, "gradient_merge": True}, "accumulate_steps"),
    ({"pipeline": True, "pipeline_configs": {"micro_batch": 2, "accumulate_steps": 3}}, "both are the number of micro-batches")])
def test_refusals(settings, error):
    fleet.init(is_collective=True)
    strategy = fleet.DistributedStrategy()
    for name, value in settings.items():
        setattr(strategy, name, value)
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = network()
        with pytest.raises(ValueError, match=error):
            fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)


def test_plan_of_every_stage(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    result = documents.run(["fleetrun", "--plan", "--nnodes=1", "--nproc_per_node=4", "train.py", "{}", "guarded", "none", "0", "1"],
                           tmp_path)
    assert result.code == 0, result.output
    assert "job: 4 workers, pp 2, dp 2; 1 host of 4 ranks" in result.output
    assert re.search(r"stage 0 +2 ", result.output) and re.search(r"stage 1 +2 ", result.output)


def test_a_loader_gives_micro_batches_or_batches():
    strategy = fleet.DistributedStrategy()
    strategy.pipeline = True
    strategy.pipeline_configs = {"accumulate_steps": 3, "micro_batch_size": 2}
    fleet.init(is_collective=True)
    loss = network()
    main, used = static.default_main_program(), []
    loader = paddle.io.DataLoader.from_generator([main.global_block().var("x")], capacity=2, iterable=False)

    def batches(rows):
        def read():
            for i in range(7):
                used.append(i)
                yield [np.full((rows, 4), i, "float32")]
        return read

    fleet.distributed_optimizer(paddle.optimizer.SGD(0.0), strategy).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    for rows, runs in ((2, 2), (6, 7)):
        loader.set_batch_generator(batches(rows))
        loader.start()
        values = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                values.append(exe.run(main, fetch_list=[loss])[0])
        assert len(values) == runs


def test_degrees_of_2_1_are_those_of_hybrid_configs():
    strategy = fleet.DistributedStrategy()
    assert strategy.in_hybrid_configs() is strategy
    strategy.sharding, strategy.tensor_parallel = True, True
    strategy.sharding_configs = {"sharding_degree": 2, "mp_degree": 2, "pp_degree": 4}
    strategy.tensor_parallel_configs = {"tensor_parallel_degree": 2}
    told = strategy.in_hybrid_configs()
    assert (told.hybrid_configs["mp_degree"], told.hybrid_configs["pp_degree"]) == (2, 4)
    assert (told.sharding_configs["mp_degree"], told.sharding_configs["pp_degree"], told.sharding_configs["sharding_degree"]) == (1, 1, 2)
    assert strategy.sharding_configs["mp_degree"] == 2 and strategy.hybrid_configs["mp_degree"] == 1
    strategy.hybrid_configs = {"mp_degree": 8}  # says otherwise: an error when the strategy is used
    assert strategy.in_hybrid_configs().sharding_configs["mp_degree"] == 2
