"""Mixed precision, by its names in 2.x and 1.x."""
import textwrap

import numpy as np
import pytest

import documents
import paddle
import paddle.fluid as fluid
from paddle import static
from paddle.distributed import fleet

R = np.random.RandomState(0)
X, Y = R.rand(32, 8).astype("float32"), R.randint(0, 4, (32, 1))


def network():
    x, y = static.data("x", [None, 8], "float32"), static.data("y", [None, 1], "int64")
    hidden = static.nn.fc(x, 16, activation="relu")
    return paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(hidden, 4), y)), hidden


def train(optimizer, steps=20, feed=X):
    main, startup = static.Program(), static.Program()
    main.random_seed = startup.random_seed = 7
    with static.program_guard(main, startup), paddle.utils.unique_name.guard(), static.scope_guard(static.Scope()):
        loss, hidden = network()
        optimizer.minimize(loss)
        exe = static.Executor(paddle.CPUPlace())
        exe.run(startup)
        if hasattr(optimizer, "amp_init"):
            optimizer.amp_init(paddle.CPUPlace())
        losses = [float(exe.run(main, feed={"x": feed, "y": Y}, fetch_list=[loss])[0]) for _ in range(steps)]
        outputs = exe.run(main, feed={"x": feed, "y": Y}, fetch_list=[hidden, "loss_scaling_0"]
                          if main.ir.has("loss_scaling_0") else [hidden])
    return losses, outputs, main


def types(program):
    return {op.type for op in program.global_block().ops}


@pytest.mark.parametrize("decorate", [static.amp.decorate, fluid.contrib.mixed_precision.decorate])
def test_a_decorated_optimizer_learns_like_the_plain_one(decorate):
    plain, outputs, program = train(paddle.optimizer.Momentum(0.1))
    assert outputs[0].dtype == np.float32 and "update_loss_scaling" not in types(program)
    mixed, outputs, program = train(decorate(paddle.optimizer.Momentum(0.1)))
    assert {"cast", "update_loss_scaling"} <= types(program)
    assert plain[-1] < 0.9 * plain[0] and np.allclose(mixed, plain, atol=0.03)
    assert outputs[0].dtype == np.float32  # bfloat16, which NumPy does not have
    assert float(outputs[1]) == 2**15


def test_float16_and_lists():
    lists = static.amp.CustomOpLists(custom_white_list=None, custom_black_list={"mul"})
    mixed, outputs, program = train(static.amp.decorate(paddle.optimizer.SGD(0.1), lists, init_loss_scaling=8.0))
    assert "cast" not in types(program) and mixed == train(paddle.optimizer.SGD(0.1))[0]
    assert float(outputs[1]) == 8
    outputs, program = train(static.amp.decorate(paddle.optimizer.SGD(0.1), dtype="float16"))[1:]
    assert outputs[0].dtype == np.float16 and program.global_block().ops


def test_bf16_by_its_own_names():
    bf16 = static.amp.bf16
    mixed, outputs, program = train(bf16.decorate_bf16(paddle.optimizer.Momentum(0.1)))
    assert "cast" in types(program) and float(outputs[1]) == 1
    assert np.allclose(mixed, train(paddle.optimizer.Momentum(0.1))[0], atol=0.03)
    lists = bf16.AutoMixedPrecisionListsBF16(custom_fp32_list=["mul"])
    assert "cast" not in types(train(bf16.decorate_bf16(paddle.optimizer.SGD(0.1), lists))[2])
    with pytest.raises(paddle.FleetXError, match="fp16_guard"):
        train(bf16.decorate_bf16(paddle.optimizer.SGD(0.1), use_pure_bf16=True))
    with pytest.raises(NotImplementedError, match="decorate_bf16"):
        bf16.rewrite_program_bf16(program)


def test_the_scale_follows_the_gradients():
    optimizer = static.amp.decorate(paddle.optimizer.SGD(0.1), init_loss_scaling=64.0, incr_every_n_steps=4,
                                    decr_every_n_nan_or_inf=1, decr_ratio=0.5)
    assert float(train(optimizer, 3)[1][1]) == 64 * 2  # four steps
    bad = X.copy()
    bad[0, 0] = np.inf
    optimizer = static.amp.decorate(paddle.optimizer.SGD(0.1), init_loss_scaling=64.0, decr_every_n_nan_or_inf=1, decr_ratio=0.5)
    assert float(train(optimizer, 2, bad)[1][1]) == 8
    assert optimizer.get_loss_scaling().name == "loss_scaling_0"


@pytest.mark.parametrize("options", [{}, {"use_pure_fp16": True, "use_fp16_guard": False}])
def test_a_saved_run_goes_on_with_the_same_bits(tmp_path, options):
    """Saved in the middle of a period of the scale."""
    loss, _ = network()
    static.amp.decorate(paddle.optimizer.Adam(0.01), incr_every_n_steps=4, **options).minimize(loss)
    exe, main = static.Executor(paddle.CPUPlace()), static.default_main_program()

    def run(steps):
        return [[np.array(v) for v in exe.run(main, feed={"x": X, "y": Y}, fetch_list=[loss, "loss_scaling_0"])]
                for _ in range(steps)]
    exe.run(static.default_startup_program())
    run(6)
    static.save(main, str(tmp_path / "model"))
    want = run(6)
    with static.scope_guard(static.Scope()):
        exe.run(static.default_startup_program())
        static.load(main, str(tmp_path / "model"), exe)
        got = run(6)
    assert np.array_equal(got, want) and float(want[-1][1]) == 2**18


def test_bad_settings():
    decorate = static.amp.decorate
    for make, words in (
            (lambda: decorate(paddle.optimizer.SGD(0.1), static.amp.CustomOpLists(["softmaks"])), "softmax"),
            (lambda: decorate(paddle.optimizer.SGD(0.1), static.amp.CustomOpLists(["gelu"], ["gelu"])), "both have the op"),
            (lambda: decorate(paddle.optimizer.SGD(0.1), static.amp.CustomOpLists(None, None, ["nobody"])), "nobody"),
            (lambda: decorate(paddle.optimizer.SGD(0.1), decr_ratio=1.5), "decr_ratio"),
            (lambda: decorate(paddle.optimizer.SGD(0.1), incr_ratio=1.0), "incr_ratio")):
        with pytest.raises(paddle.FleetXError, match=words):
            train(make())
    with pytest.raises(ValueError, match="bfloat16, float16"):
        decorate(paddle.optimizer.SGD(0.1), dtype="float64")
    with pytest.raises(TypeError, match="CustomOpLists"):
        decorate(paddle.optimizer.SGD(0.1), ["fc"])
    with pytest.raises(NotImplementedError, match="minimize"):
        decorate(paddle.optimizer.SGD(0.1)).backward(None)


def test_amp_configs_take_lists_that_are_none():
    strategy = fleet.DistributedStrategy()
    strategy.amp, strategy.amp_configs = True, {"custom_white_list": None, "custom_black_list": {"softmax", "exp"}}
    assert strategy.amp_configs["custom_white_list"] == [] and strategy.amp_configs["custom_black_list"] == ["exp", "softmax"]
    assert strategy.amp_configs["dtype"] == "bfloat16"
    with pytest.raises(ValueError, match=r"amp_configs\['init_loss_scaling'\] is None.*32768"):
        strategy.amp_configs = {"init_loss_scaling": None}
    with pytest.raises(ValueError, match=r"DistributedStrategy.recompute is None; .* False"):
        strategy.recompute = None
    for bad in (["conv2d", 3], [None], [object()]):
        with pytest.raises(ValueError, match=r"amp_configs\['custom_white_list'\] is \["):
            strategy.amp_configs = {"custom_white_list": bad}


def test_a_model_without_training(run):
    x = static.data("x", [None, 8], "float32")
    hidden = static.nn.fc(x, 16, activation="relu")
    out = paddle.nn.functional.softmax(hidden)
    assert static.amp.cast_model_to_fp16(static.default_main_program(), use_fp16_guard=False) == set()
    assert "cast" in types(static.default_main_program())
    hidden, out = run({"x": X}, [hidden, out])
    assert np.allclose(out.sum(1), 1, atol=1e-4) and np.allclose(np.exp(hidden) / np.exp(hidden).sum(1, keepdims=True), out, atol=1e-3)


def pure(guard, **options):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup), paddle.utils.unique_name.guard(), static.scope_guard(static.Scope()):
        x, y = static.data("x", [None, 8], "float32"), static.data("y", [None, 1], "int64")
        with static.amp.fp16_guard():
            hidden = static.nn.fc(x, 16, activation="relu")
        loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(hidden, 4), y))
        test = main.clone(for_test=True)
        optimizer = static.amp.decorate(paddle.optimizer.Momentum(0.1, **options), use_pure_fp16=True, use_fp16_guard=guard)
        optimizer.minimize(loss)
        exe = static.Executor(paddle.CPUPlace())
        exe.run(startup)
        optimizer.amp_init(paddle.CPUPlace(), test_program=test)
        feed = {"x": X, "y": Y}
        losses = [float(exe.run(main, feed=feed, fetch_list=[loss])[0]) for _ in range(20)]
        tested = float(exe.run(test, feed=feed, fetch_list=[loss])[0])
    return losses, tested, [p.dtype for p in main.all_parameters()]


def test_parameters_of_16_bits():
    for guard, options, want in ((False, {}, ["bfloat16"] * 4), (True, {}, ["bfloat16"] * 2 + ["float32"] * 2),
                                 (False, {"multi_precision": True}, ["float32"] * 4)):
        losses, tested, dtypes = pure(guard, **options)
        assert dtypes == want and losses[-1] < 0.9 * losses[0] and abs(tested - losses[-1]) < 0.1
    with pytest.raises(paddle.FleetXError, match="fp16_guard"):
        train(static.amp.decorate(paddle.optimizer.SGD(0.1), use_pure_fp16=True))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_inference_model_with_parameters_of_16_bits(tmp_path, dtype):
    loss, hidden = network()
    static.amp.decorate(paddle.optimizer.SGD(0.1), use_pure_fp16=True, use_fp16_guard=False, dtype=dtype).minimize(loss)
    exe, main = static.Executor(paddle.CPUPlace()), static.default_main_program()
    exe.run(static.default_startup_program())
    exe.run(main, feed={"x": X, "y": Y}, fetch_list=[loss])
    want, = exe.run(main.clone(for_test=True), feed={"x": X, "y": Y}, fetch_list=[hidden])
    static.save_inference_model(str(tmp_path / "model"), [main.global_block().var("x")], [hidden], exe)
    with static.scope_guard(static.Scope()):
        program, feeds, fetches = static.load_inference_model(str(tmp_path / "model"), exe)
        assert {p.dtype for p in program.all_parameters()} == {dtype}
        np.testing.assert_array_equal(exe.run(program, feed={feeds[0]: X}, fetch_list=fetches)[0], want)


def test_parameters_of_16_bits_begin_as_those_of_32():
    def first_values(optimizer):
        main, startup = static.Program(), static.Program()
        startup.random_seed = 7
        with static.program_guard(main, startup), paddle.utils.unique_name.guard(), static.scope_guard(static.Scope()):
            optimizer.minimize(network()[0])
            static.Executor(paddle.CPUPlace()).run(startup)
            return {p.name: np.array(static.global_scope().find_var(p.name).get_tensor()) for p in main.all_parameters()}
    plain = first_values(paddle.optimizer.SGD(0.1))
    pure = first_values(static.amp.decorate(paddle.optimizer.SGD(0.1), use_pure_fp16=True, use_fp16_guard=False))
    for name, value in plain.items():
        np.testing.assert_allclose(pure[name], value, rtol=2**-8)  # half a unit of the last place
    assert any(not np.array_equal(pure[name], plain[name]) for name in plain)


def test_two_workers_skip_together(tmp_path):
    (tmp_path / "a.py").write_text(textwrap.dedent("""
        import numpy as np
        import paddle
        from paddle import static
        from paddle.distributed import fleet
        paddle.enable_static()
        fleet.init(is_collective=True)
        x = static.data("x", [None, 8], "float32")
        loss = paddle.mean(static.nn.fc(static.nn.fc(x, 16, activation="relu"), 4))
        strategy = fleet.DistributedStrategy()
        strategy.amp, strategy.amp_configs = True, {"init_loss_scaling": 64.0, "decr_every_n_nan_or_inf": 1, "decr_ratio": 0.5}
        optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(0.1), strategy)
        optimizer.minimize(loss)
        exe = static.Executor(paddle.CPUPlace())
        exe.run(static.default_startup_program())
        optimizer.amp_init(paddle.CPUPlace())
        name = static.default_main_program().all_parameters()[0].name
        seen = []
        for step in range(4):
            feed = np.ones((4, 8), "float32")
            if step == 2 and fleet.worker_index() == 1:
                feed[0] = np.nan
            exe.run(feed={"x": feed}, fetch_list=[loss])
            seen.append(np.array(static.global_scope().find_var(name).get_tensor()).copy())
        changed = [not np.array_equal(a, b) for a, b in zip(seen, seen[1:])]
        scale = float(np.array(static.global_scope().find_var("loss_scaling_0").get_tensor()))
        print("worker", fleet.worker_index(), changed, scale, np.isfinite(seen[-1]).all(), fleet._get_applied_meta_list())
    """))
    result = documents.run("fleetrun --gpus=0,1 a.py", tmp_path)
    for worker, output in enumerate((result.output, (tmp_path / "log" / "workerlog.1").read_text())):
        assert f"worker {worker} [True, False, True] 32.0 True ['amp', 'data_parallel']" in output, output
