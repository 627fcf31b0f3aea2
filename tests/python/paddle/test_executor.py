"""Running programs: feeds, fetches, errors, interruption, threads."""
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static


def double():
    x = static.data("x", [None, 3], "float32")
    return x, x * 2


def test_fetches_by_variable_name_and_nested_list(run):
    x, y = double()
    array = np.arange(6, dtype="float32").reshape(2, 3)
    for fetch in ([y], [y.name], [[y]], (y,), y):
        np.testing.assert_array_equal(run({"x": array}, fetch)[0], array * 2)


def test_formats_of_the_documents(run):
    x, y = double()
    loss = paddle.mean(y)
    cost_val = run({"x": np.ones((2, 3), "float32")}, [loss.name])
    assert "%f" % cost_val[0] == "2.000000" and "%.5f" % cost_val[0] == "2.00000"
    assert cost_val[0][0] == 2.0 and float(cost_val[0]) == 2.0 and "{:.1f}".format(cost_val[0]) == "2.0"
    assert np.mean([cost_val[0], cost_val[0]]) == 2.0 and repr(cost_val) == "[array([2.], dtype=float32)]"


def test_feeds_lists_numbers_and_other_floats(run):
    x, y = double()
    for value in ([[1, 2, 3]], np.array([[1.0, 2, 3]]), np.array([[1, 2, 3]], "float16"), fluid.LoDTensor([[1., 2, 3]])):
        np.testing.assert_array_equal(run({"x": value}, [y])[0], [[2, 4, 6]])
    np.testing.assert_array_equal(run([{"x": [[1, 2, 3]]}], [y])[0], [[2, 4, 6]])


def test_row_major_arrays_are_not_copied():
    x, y = double()
    exe = static.Executor()
    array = np.ones((4, 3), "float32")
    references = sys.getrefcount(array)
    exe.run(feed={"x": array}, fetch_list=[y])
    assert sys.getrefcount(array) == references  # given back after the run


def test_an_array_is_fed_where_it_lies(tmp_path):
    """It has 4 GiB and the process may not get as much again."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""
        import mmap, resource
        import numpy as np, paddle
        from paddle import static
        rows, columns = 1 << 10, 1 << 20
        untouched = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
        array = np.frombuffer(mmap.mmap(-1, rows * columns * 4, untouched), "float32").reshape(rows, columns)
        array[1:3, :2] = 5
        y = paddle.slice(static.data("x", [None, columns], "float32"), [0, 1], [0, 0], [4, 3])
        exe = static.Executor()
        exe.run(feed={"x": array[:4]}, fetch_list=[y])
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
        print(exe.run(feed={"x": array}, fetch_list=[y])[0].sum())
        try:
            exe.run(feed={"x": array[:, ::2]}, fetch_list=[y])
        except MemoryError:
            print("no memory for a copy")
    """))
    out = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert out.stdout == "20.0\nno memory for a copy\n", out.stdout + out.stderr


def test_arrays_of_other_layouts_are_copied():
    x, y = double()
    exe = static.Executor()
    plain = np.arange(24, dtype="float32").reshape(4, 6)
    for array in (plain[:, ::2], plain[::-1, :3], np.asfortranarray(plain[:, :3]), plain.astype(">f4")[:, :3],
                  np.broadcast_to(plain[0, :3], (4, 3))):
        np.testing.assert_array_equal(exe.run(feed={"x": array}, fetch_list=[y])[0], array * 2)


def test_fetched_values_stay_when_the_next_run_begins():
    x, y = double()
    exe = static.Executor()
    first, = exe.run(feed={"x": np.ones((1, 3), "float32")}, fetch_list=[y])
    exe.run(feed={"x": np.zeros((1, 3), "float32")}, fetch_list=[y])
    assert (first == 2).all()


def test_a_program_runs_with_other_batch_sizes():
    x, y = double()
    exe = static.Executor()
    for n in (1, 5, 1, 7):
        assert exe.run(feed={"x": np.ones((n, 3), "float32")}, fetch_list=[y])[0].shape == (n, 3)


# ---- errors ----
def test_lists_of_different_lengths_are_named():
    x, y = double()
    with pytest.raises(paddle.InvalidArgumentError, match="feed 'x' is not an array"):
        static.Executor().run(feed={"x": [[1, 2, 3], [1, 2]]}, fetch_list=[y])


def test_a_shape_must_be_a_list():
    with pytest.raises(TypeError, match="data 'x': shape must be a list"):
        static.data("x", "3", "float32")


def test_an_op_error_shows_the_users_line_op_and_shapes():
    x = static.data("x", [None, 3], "float32")
    w = static.data("w", [5, 2], "float32")
    with pytest.raises(paddle.InvalidArgumentError) as error:
        paddle.matmul(x, w)  # the line
    line = next(i for i, text in enumerate(open(__file__), 1) if "# the line" in text)
    message = str(error.value)
    assert f"test_executor.py:{line}: matmul" in message and "[-1,3]" in message and "[5,2]" in message
    assert isinstance(error.value, ValueError)


def test_an_error_while_running_shows_where_the_op_was_written(run):
    ids = static.data("ids", [None], "int64")
    rows = static.nn.embedding(ids, (4, 2))  # here
    line = next(i for i, text in enumerate(open(__file__), 1) if "# here" in text)
    with pytest.raises(paddle.FleetXError) as error:
        run({"ids": np.array([1, 9])}, [rows])
    assert f"test_executor.py:{line}: embedding" in str(error.value) and "9" in str(error.value)


@pytest.mark.parametrize("feed, words", [
    ({}, "'x' is missing"), ({"x": np.ones((2, 4), "float32")}, "'x'"), ({"x": np.ones((2, 3)) > 0}, ""),
    ({"x": np.array([["a", "b", "c"]])}, "'x'"), ({"x": [[1, 2], [3]]}, "")])
def test_wrong_feeds_are_named(feed, words):
    x, y = double()
    exe = static.Executor()
    if feed and getattr(feed["x"], "dtype", None) == bool:
        pytest.skip("bool is a number")
    with pytest.raises((ValueError, RuntimeError)) as error:
        exe.run(feed=feed, fetch_list=[y])
    assert words in str(error.value)


def test_whole_numbers_are_not_made_of_fractions():
    y = static.data("y", [None], "int64")
    with pytest.raises(paddle.InvalidArgumentError, match="'y' is declared as int64"):
        static.Executor().run(feed={"y": np.array([0.5])}, fetch_list=[y + 1])


def test_unknown_feeds_are_left_out_with_a_warning():
    x, y = double()
    with pytest.warns(UserWarning, match="unknown_thing"):
        static.Executor().run(feed={"x": np.ones((1, 3), "float32"), "unknown_thing": np.ones(1)}, fetch_list=[y])


def test_parameters_without_startup_are_named():
    y = static.nn.fc(static.data("x", [None, 3], "float32"), 2)
    with pytest.raises(paddle.FleetXError, match="fc_0.w_0"):
        static.Executor().run(feed={"x": np.ones((1, 3), "float32")}, fetch_list=[y])


def test_wrong_kinds_of_arguments():
    x, y = double()
    for call in (lambda: static.Executor().run("program"), lambda: static.Executor().run(feed=3),
                 lambda: paddle.add("x", y), lambda: paddle.optimizer.SGD("fast"),
                 lambda: static.Executor().run(feed={"x": np.ones((1, 3), "float32")}, fetch_list=[3])):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(NotImplementedError, match="static"):
        y.backward()


# ---- beside other things ----
def slow_program():
    x = static.data("x", [None, 512], "float32")
    h = x
    for _ in range(60):
        h = static.nn.fc(h, 512, activation="relu")
    return paddle.mean(h)


def test_python_threads_run_while_a_plan_runs():
    loss = slow_program()
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": np.ones((256, 512), "float32")}
    exe.run(feed=feed, fetch_list=[loss])
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.001)
    thread = threading.Thread(target=tick)
    thread.start()
    before, begin = ticks[0], time.time()
    for _ in range(3):
        exe.run(feed=feed, fetch_list=[loss])
    seconds, counted = time.time() - begin, ticks[0] - before
    stop.set()
    thread.join()
    assert counted > 3 + seconds * 50  # with the GIL held it would be one or two per run


def test_ctrl_c_stops_a_step(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""
        import numpy as np, paddle, time
        from paddle import static
        x = static.data("x", [None, 1024], "float32")
        h = x
        for _ in range(40):
            h = static.nn.fc(h, 1024)
        exe = static.Executor()
        exe.run(static.default_startup_program())
        feed = {"x": np.ones((8192, 1024), "float32")}
        print("ready", flush=True)
        begin = time.time()
        try:
            exe.run(feed=feed, fetch_list=[paddle.mean(h)])
            print("ended after", time.time() - begin)
        except KeyboardInterrupt:
            print("interrupted after", time.time() - begin)
    """))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    sent = time.time()
    out, _ = process.communicate(timeout=120)
    assert out.startswith("interrupted after") and time.time() - sent < 5


def test_executors_of_several_threads(rng):
    x, y = double()
    program, scope = static.default_main_program(), static.global_scope()
    results = {}

    def work(i):
        exe = static.Executor()
        results[i] = exe.run(program, feed={"x": np.full((2, 3), i, "float32")}, fetch_list=[y], scope=scope)[0]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((results[i] == 2 * i).all() for i in range(4))


def test_threads_take_turns_at_one_executor():
    """In a process of its own: it would end where they did not."""
    script = """
import threading
import numpy as np, paddle
from paddle import static
paddle.enable_static()
x = static.data("x", [None, 4], "float32")
total = paddle.sum(static.nn.fc(x, 256, weight_attr=paddle.nn.initializer.Constant(1.0)))
exe, main = static.Executor(), static.default_main_program()
exe.run(static.default_startup_program())
right = []

def work(batch):
    fed = np.full((batch, 4), batch, "float32")
    right.append(all(exe.run(main, feed={"x": fed}, fetch_list=[total])[0] == 1024 * batch**2 for _ in range(100)))
threads = [threading.Thread(target=work, args=(batch,)) for batch in (1, 8, 32, 64)]
[t.start() for t in threads]
[t.join() for t in threads]
print(right)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 and "[True, True, True, True]" in done.stdout, (done.returncode, done.stderr)


def test_scopes_are_apart():
    x = static.data("x", [None, 2], "float32")
    y = static.nn.fc(x, 2)
    exe, other = static.Executor(), static.Scope()
    exe.run(static.default_startup_program())
    with static.scope_guard(other):
        exe.run(static.default_startup_program())
        static.global_scope().find_var("fc_0.w_0").get_tensor().set(np.zeros((2, 2), "float32"), paddle.CPUPlace())
        assert not exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[y])[0].any()
    assert exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[y])[0].any()
    tensor = static.global_scope().find_var("fc_0.w_0").get_tensor()
    assert tensor._get_dims() == [2, 2] and static.global_scope().find_var("nothing") is None
    with pytest.raises(ValueError, match="shape"):
        tensor.set(np.zeros((3, 2)), paddle.CPUPlace())


def test_programs_can_be_looked_at():
    x = static.data("x", [None, 3], "float32")
    loss = paddle.mean(static.nn.fc(x, 2))
    paddle.optimizer.SGD(0.1).minimize(loss)
    program = static.default_main_program()
    block = program.global_block()
    assert [op.type for op in block.ops][:2] == ["fc", "mean"] and block.has_var("fc_0.w_0")
    assert block.ops[0].input("x") == ["x"] and block.ops[0].output("out") == [loss.program.global_block().ops[1].input("x")[0]]
    assert block.var("x").shape == (-1, 3) and block.var("x").dtype == "float32" and repr(paddle.float32) == "paddle.float32"
    assert "fc_0.w_0" in str(program) and {v.name for v in program.list_vars()} >= {"x", "fc_0.w_0", "fc_0.b_0"}
    again = static.Program.parse_from_string(program.desc.serialize_to_string())
    assert str(again) == str(program)
    test = program.clone(for_test=True)
    assert [op.type for op in test.global_block().ops] == ["fc", "mean"]
    assert len(program.clone().global_block().ops) == len(block.ops)


def test_unique_name_guard_shares_parameters_of_train_and_test():
    train, startup, test = static.Program(), static.Program(), static.Program()

    def net():
        return static.nn.fc(static.data("x", [None, 3], "float32"), 2)
    with static.program_guard(train, startup), paddle.utils.unique_name.guard():
        a = net()
    with static.program_guard(test, startup), paddle.utils.unique_name.guard():
        b = net()
    exe = static.Executor()
    exe.run(startup)
    feed = {"x": np.ones((1, 3), "float32")}
    np.testing.assert_array_equal(exe.run(train, feed, [a])[0], exe.run(test, feed, [b])[0])
    assert [p.name for p in train.all_parameters()] == [p.name for p in test.all_parameters()]


def test_seeds():
    def weights(seed):
        with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()), \
                paddle.utils.unique_name.guard():
            static.default_startup_program().random_seed = seed
            static.nn.fc(static.data("x", [None, 3], "float32"), 2)
            static.Executor().run(static.default_startup_program())
            return static.global_scope().find_var("fc_0.w_0").get_tensor().numpy()
    np.testing.assert_array_equal(weights(1), weights(1))
    assert not np.array_equal(weights(1), weights(2))


def test_metrics_of_wide_and_deep(rng):
    """State that is assigned to in the program, and lengths that come with the batch."""
    pred, label = static.data("pred", [None, 1], "float32"), static.data("label", [None, 1], "float32")
    total = static.create_global_var(name="total", persistable=True, dtype="float32", shape=[1], value=0)
    error = static.create_global_var(name="error", persistable=True, dtype="float32", shape=[1], value=0)
    count = paddle.sum(paddle.full(shape=[paddle.shape(label)[0], 1], fill_value=1.0))
    paddle.assign(error + paddle.nn.functional.l1_loss(pred, label, reduction="sum"), error)
    paddle.assign(total + count, total)
    mae = error / total
    exe = static.Executor()
    exe.run(static.default_startup_program())
    seen = []
    for n in (4, 6):
        p, l = rng.rand(n, 1).astype("float32"), rng.rand(n, 1).astype("float32")
        seen.append(np.abs(p - l))
        got, = exe.run(feed={"pred": p, "label": l}, fetch_list=[mae])
        assert float(got) == pytest.approx(np.concatenate(seen).mean(), rel=1e-5)
    static.global_scope().find_var("total").get_tensor().set(np.zeros(1, "float32"), paddle.CPUPlace())


# ---- programs and their scope ----
def test_a_second_startup_program_replaces_variables_of_other_shapes(rng):
    exe = static.Executor()
    for width in (3, 5, 3):
        main, startup = static.Program(), static.Program()
        with static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x = static.data("x", [None, width], "float32")
            loss = paddle.mean(static.nn.fc(x, 4))
            paddle.optimizer.Momentum(0.1, 0.9).minimize(loss)
        exe.run(startup)
        got, = exe.run(main, feed={"x": rng.randn(2, width).astype("float32")}, fetch_list=["fc_0.w_0"])
        assert got.shape == (width, 4)
    other, _ = static.Program(), static.Program()
    with static.program_guard(other, static.Program()), paddle.utils.unique_name.guard():
        out = static.nn.fc(static.data("x", [None, 7], "float32"), 4)
    with pytest.raises(ValueError, match=r"fc_0.w_0.*\[3,4\].*\[7,4\]"):  # without its own startup program
        exe.run(other, feed={"x": np.ones((1, 7), "float32")}, fetch_list=[out])


def test_schedules_count_without_an_optimizer():
    from paddle import fluid
    rates = [fluid.layers.piecewise_decay([1, 3], [0.4, 0.2, 0.1]), fluid.layers.exponential_decay(1.0, 1, 0.5),
             fluid.layers.linear_lr_warmup(fluid.layers.polynomial_decay(0.5, 10), 2, 0.0, 0.5),
             fluid.layers.learning_rate_scheduler._decay_step_counter()]
    exe = static.Executor()
    exe.run(static.default_startup_program())
    got = np.array([[float(v) for v in exe.run(fetch_list=rates)] for _ in range(4)])
    np.testing.assert_allclose(got[:, 0], [0.4, 0.2, 0.2, 0.1], rtol=1e-6)
    np.testing.assert_allclose(got[:, 1], [1.0, 0.5, 0.25, 0.125], rtol=1e-6)
    np.testing.assert_allclose(got[:2, 2], [0.0, 0.25], rtol=1e-6)
    np.testing.assert_allclose(got[:, 3], [0, 1, 2, 3])


def test_a_schedule_of_an_optimizer_counts_once(rng):
    from paddle import fluid
    rate = fluid.layers.exponential_decay(1.0, 1, 0.5)
    x = static.data("x", [None, 3], "float32")
    fluid.optimizer.SGD(rate).minimize(paddle.mean(static.nn.fc(x, 4)))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    got = [float(exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[rate])[0]) for _ in range(3)]
    np.testing.assert_allclose(got, [1.0, 0.5, 0.25])


def test_requests_that_cannot_be_served_are_named():
    x = static.data("x", [None, 3], "float32")
    out = paddle.mean(x)
    exe = static.Executor()
    feed = {"x": np.ones((2, 3), "float32")}
    with pytest.raises(NotImplementedError, match="use_prune"):
        exe.run(feed=feed, fetch_list=[out], use_prune=True)
    with pytest.raises(NotImplementedError, match="return_merged"):
        exe.run(feed=feed, fetch_list=[out], return_merged=False)
    with pytest.raises(TypeError, match="build_strategy"):
        static.CompiledProgram(static.default_main_program(), {"sync_batch_norm": True})
