"""Feeds of 1.x whose lengths are others than those of fluid.layers.data and py_reader."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static


def attention(words, mask, size=8, heads=2):
    """As networks of 1.x for text are written: lengths of sequences only in reshapes that keep them."""
    layers = fluid.layers
    x = layers.embedding(words, [20, size], param_attr=fluid.ParamAttr("emb", initializer=fluid.initializer.Normal(seed=1)))
    both = layers.matmul(mask, mask, transpose_y=True)
    bias = layers.stack([layers.scale(both, 10.0, bias=-1.0, bias_after_scale=False)] * heads, axis=1)
    bias.stop_gradient = True
    q = layers.fc(x, size, num_flatten_dims=2, param_attr=fluid.ParamAttr("w", initializer=fluid.initializer.Normal(seed=2)))
    q = layers.transpose(layers.reshape(q, [0, 0, heads, size // heads]), [0, 2, 1, 3])
    out = layers.matmul(layers.softmax(layers.matmul(q, q, transpose_y=True) + bias), q)
    out = layers.transpose(out, [0, 2, 1, 3])
    out = layers.reshape(out, [0, 0, out.shape[2] * out.shape[3]])
    first = layers.slice(out, axes=[1], starts=[0], ends=[1])
    rows = layers.reshape(out, [-1, size])
    return layers.mean(layers.concat([layers.reduce_sum(first, dim=[0, 1]), layers.reduce_mean(rows, dim=0)], axis=0) ** 2)


def batch(length):
    words = np.random.RandomState(length).randint(0, 20, (3, length, 1))
    mask = np.ones((3, length, 1), "float32")
    mask[0, length - 1] = 0
    return {"words": words, "mask": mask}


def losses(length, optimizer, lengths=(16, 7, 12, 16)):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup), fluid.unique_name.guard(), static.scope_guard(static.Scope()):
        words = fluid.layers.data("words", [-1, length, 1], dtype="int64", append_batch_size=False)
        mask = fluid.layers.data("mask", [-1, length, 1], append_batch_size=False)
        loss = attention(words, mask)
        optimizer().minimize(loss)
        assert words.shape == (-1, length, 1) and main.ir.shape("words") == (-1, -1, 1)
        exe = static.Executor()
        exe.run(startup)
        return [exe.run(main, feed=batch(n), fetch_list=[loss])[0].item() for n in lengths]


def of_fleet():
    from paddle.distributed import fleet
    fleet.init(is_collective=True)
    return fleet.distributed_optimizer(paddle.optimizer.Adam(0.05), fleet.DistributedStrategy())


@pytest.mark.parametrize("optimizer", [lambda: fluid.optimizer.Adam(0.05), lambda: fluid.optimizer.Momentum(0.1, 0.9), of_fleet])
def test_batches_as_long_as_their_sequences(optimizer):
    np.testing.assert_allclose(losses(16, optimizer), losses(-1, optimizer), rtol=1e-5)


def test_of_a_py_reader_and_its_clone_for_testing():
    reader = fluid.layers.py_reader(4, [[-1, 16, 1], [-1, 16, 1]], ["int64", "float32"], name="reader")
    loss = attention(*fluid.layers.read_file(reader))
    test = static.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    reader.decorate_tensor_provider(lambda: iter([list(batch(n).values()) for n in (5, 9)]))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    for program in (static.default_main_program(), test):
        reader.start()
        with pytest.raises(fluid.core.EOFException):
            for steps in range(5):
                assert np.isfinite(exe.run(program, fetch_list=[loss])[0]).all()
        assert steps == 2


def test_pictures_of_another_size_where_nothing_is_trained(run):
    picture = fluid.layers.data("picture", [3, 8, 8])
    pooled = fluid.layers.pool2d(fluid.layers.conv2d(picture, 4, 3, padding=1), pool_type="avg", global_pooling=True)
    assert run({"picture": np.ones((2, 3, 12, 10), "float32")}, [pooled])[0].shape == (2, 4, 1, 1)
    assert run({"picture": np.ones((2, 3, 8, 8), "float32")}, [pooled])[0].shape == (2, 4, 1, 1)
    with pytest.raises(ValueError, match=r"feed 'picture': .* got \[2, 4, 8, 8\].*conv2d"):
        run({"picture": np.ones((2, 4, 8, 8), "float32")}, [pooled])


def test_lengths_that_the_network_needs_stay():
    words = fluid.layers.data("words", [6, 1], dtype="int64")
    x = fluid.layers.fc(fluid.layers.embedding(words, [20, 4]), 3)  # flattens 6 * 4
    loss = fluid.layers.mean(x)
    fluid.optimizer.SGD(0.1).minimize(loss)
    assert static.default_main_program().ir.shape("words") == (-1, 6, 1)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    exe.run(feed={"words": np.ones((2, 6, 1), "int64")}, fetch_list=[loss])
    with pytest.raises(ValueError, match="feed 'words': the program declares"):
        exe.run(feed={"words": np.ones((2, 5, 1), "int64")}, fetch_list=[loss])


def test_other_ranks_and_data_sets_go_by_what_is_declared(tmp_path):
    words = fluid.layers.data("words", [4, 1], dtype="int64")
    loss = fluid.layers.mean(fluid.layers.embedding(words, [20, 3]))
    fluid.optimizer.SGD(0.1).minimize(loss)
    assert static.default_main_program().ir.shape("words") == (-1, -1, 1)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    exe.run(feed={"words": np.ones((2, 4), "int64")}, fetch_list=[loss])
    assert fluid.layers.data("words", [4, 1], dtype="int64") is words
    (tmp_path / "part").write_text("4 1 2 3 4\n4 5 6 7 8\n")
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var([words])
    dataset.set_batch_size(2)
    dataset.set_filelist([str(tmp_path / "part")])
    exe.train_from_dataset(static.default_main_program(), dataset)


def test_a_list_of_feeds_is_one_batch():
    x = fluid.layers.data("x", [2])
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    rows = fluid.layers.fc(x, 3, param_attr="w", bias_attr=False)
    pooled = fluid.layers.sequence_pool(fluid.layers.cast(words, "float32"), "sum")
    exe = static.Executor()
    exe.run(static.default_startup_program())

    def part(n, lengths):
        return {"x": np.full((n, 2), n, "float32"), "w": np.ones((2, 3), "float32"),
                "words": fluid.create_lod_tensor(np.ones((sum(lengths), 1), "int64"), [lengths])}
    got = exe.run(feed=[part(2, [1, 3]), part(1, [2])], fetch_list=[rows, pooled])
    np.testing.assert_array_equal(got[0], [[4] * 3, [4] * 3, [2] * 3])
    np.testing.assert_array_equal(got[1], [[1], [3], [2]])
    with pytest.raises(ValueError, match="same names"):
        exe.run(feed=[part(2, [1]), {}], fetch_list=[rows])
    with pytest.raises(ValueError, match=r"feed 'x': 2 dicts are one batch.*\[2\] and \[3\].*pad them"):
        exe.run(feed=[{"x": np.ones((1, 2))}, {"x": np.ones((1, 3))}], fetch_list=[rows])


def test_memory_usage():
    x = fluid.layers.data("x", [256])
    fluid.layers.fc(x, 512, bias_attr=False)
    least, most, unit = fluid.contrib.memory_usage(static.default_main_program(), 128)
    assert unit == "KB" and least == 512 + 256 and most == 512 + 128 + 256
    with pytest.raises(ValueError, match="batch_size must be positive"):
        fluid.contrib.memory_usage(static.default_main_program(), 0)


def test_inputs_that_are_checked_in_the_original_are_checked_here(run):
    x = fluid.data("x", [None, 4], "float32")
    with pytest.raises(ValueError, match="feed 'x': the program declares"):
        run({"x": np.ones((2, 5), "float32")}, [x * 2.0])


def test_batches_that_are_ready_are_counted():
    reader = fluid.layers.py_reader(3, [[-1, 2]], ["float32"], name="reader")
    out = fluid.layers.mean(fluid.layers.read_file(reader))
    reader.decorate_tensor_provider(lambda: iter([[np.ones((1, 2), "float32")]] * 4))
    assert reader.queue.size() == 0
    reader.start()
    exe = static.Executor()
    counts = []
    with pytest.raises(fluid.core.EOFException):
        while True:
            exe.run(fetch_list=[out])
            counts.append(reader.queue.size())
    assert len(counts) == 4 and all(0 <= n <= 3 for n in counts)
    reader.reset()
    assert reader.queue.size() == 0


def test_training_from_the_loader_of_a_program(capsys):
    x = fluid.layers.data("x", [2])
    loader = fluid.io.DataLoader.from_generator([x], capacity=4, iterable=False)
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="w", bias_attr=False))
    fluid.optimizer.SGD(0.5).minimize(loss)
    loader.set_batch_generator(lambda: iter([[np.ones((3, 2), "float32")]] * 5))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    before = static.global_scope().find_var("w").get_tensor().numpy()
    loader.start()
    exe.train_from_dataset(static.default_main_program(), fetch_list=[loss], fetch_info=["loss"], print_period=2, debug=True)
    np.testing.assert_allclose(static.global_scope().find_var("w").get_tensor().numpy(), before - 5 * 0.5, rtol=1e-5)
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["batch 2", "batch 4"]
    with pytest.raises(TypeError, match="needs a dataset.*iterable=False"):
        exe.train_from_dataset(static.Program())
