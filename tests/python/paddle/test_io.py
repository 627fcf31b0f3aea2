"""Readers, loaders, files and data sets."""
import gzip
import pathlib
import struct
import tarfile
import time
import zlib

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static


def samples(n=10):
    def reader():
        for i in range(n):
            yield np.full(3, i, "float32"), i % 2
    return reader


def feeds():
    return [static.data("x", [None, 3], "float32"), static.data("y", [None, 1], "int64")]


def check(batches, sizes=(4, 4, 2)):
    assert [len(b["x"]) for b in batches] == list(sizes)
    assert batches[1]["x"].dtype == np.float32 and batches[1]["y"].dtype == np.int64
    assert batches[1]["y"].shape == (4, 1) and batches[1]["x"][0, 0] == 4


@pytest.mark.parametrize("double_buffer", [True, False])
def test_loader_of_sample_lists(double_buffer):
    loader = paddle.io.DataLoader.from_generator(feed_list=feeds(), capacity=8, use_double_buffer=double_buffer)
    loader.set_sample_list_generator(paddle.batch(samples(), 4), paddle.CPUPlace())
    for _ in range(2):  # an epoch after the other
        check([b[0] for b in loader()])
    check([b[0] for b in loader])


def test_loader_of_samples_drops_the_rest():
    loader = paddle.io.DataLoader.from_generator(feed_list=feeds(), capacity=2)
    loader.set_sample_generator(samples(), batch_size=4, places=paddle.CPUPlace())
    check([b[0] for b in loader()], (4, 4))


def test_loader_of_batches_as_lists():
    loader = paddle.io.DataLoader.from_generator(feed_list=feeds(), capacity=2, return_list=True)
    loader.set_batch_generator(lambda: iter([(np.ones((2, 3), "float32"), np.zeros((2, 1), "int64"))]), paddle.CPUPlace())
    (x, y), = list(loader())
    assert x.shape == (2, 3) and y.shape == (2, 1)


def test_loader_that_is_started():
    variables = feeds()
    loader = fluid.io.DataLoader.from_generator(feed_list=variables, capacity=4, iterable=False)
    loader.set_sample_list_generator(paddle.batch(samples(), 4))
    total = paddle.sum(variables[0])
    exe = static.Executor()
    for _ in range(2):
        loader.start()
        sums = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                sums.append(float(exe.run(fetch_list=[total])[0]))
        loader.reset()
        assert sums == [18, 66, 51]


def test_an_error_in_a_reader_arrives():
    def broken():
        yield np.zeros(3, "float32"), 0
        raise KeyError("the file is gone")
    loader = paddle.io.DataLoader.from_generator(feed_list=feeds(), capacity=2)
    loader.set_sample_list_generator(paddle.batch(broken, 1))
    with pytest.raises(KeyError, match="the file is gone"):
        list(loader())


def test_a_loader_can_be_left_early():
    loader = paddle.io.DataLoader.from_generator(feed_list=feeds(), capacity=2)
    loader.set_sample_list_generator(paddle.batch(samples(100000), 4))
    for i, _ in enumerate(loader()):
        if i == 3:
            break


def test_data_feeder():
    feeder = fluid.DataFeeder(place=fluid.CPUPlace(), feed_list=feeds())
    check([feeder.feed(data) for data in paddle.batch(samples(), batch_size=4)()])


def test_reader_decorators():
    reader = paddle.reader
    numbers = lambda: iter(range(10))  # noqa: E731
    assert list(reader.firstn(numbers, 3)()) == [0, 1, 2]
    assert sorted(reader.shuffle(numbers, 4)()) == list(range(10))
    assert list(reader.chain(numbers, numbers)()) == list(range(10)) * 2
    assert list(reader.compose(numbers, numbers)())[3] == (3, 3)
    assert list(reader.map_readers(lambda a, b: a + b, numbers, numbers)()) == [2 * i for i in range(10)]
    assert list(reader.buffered(numbers, 2)()) == list(range(10))
    assert list(reader.xmap_readers(lambda x: x * x, numbers, 4, 8, order=True)()) == [i * i for i in range(10)]
    assert sorted(reader.xmap_readers(lambda x: x * x, numbers, 4, 8)()) == [i * i for i in range(10)]
    assert list(reader.cache(numbers)()) == list(range(10))
    with pytest.raises(ZeroDivisionError):
        list(reader.xmap_readers(lambda x: 1 // x, numbers, 2, 4)())
    with pytest.raises(reader.ComposeNotAligned):
        list(reader.compose(numbers, reader.firstn(numbers, 3))())


def test_loader_of_a_dataset():
    class Squares(paddle.io.Dataset):
        def __len__(self):
            return 10

        def __getitem__(self, i):
            return np.full(3, i, "float32"), np.array([i % 2], "int64")
    loader = paddle.io.DataLoader(Squares(), feed_list=feeds(), batch_size=4)
    check([b[0] for b in loader])
    assert len(loader) == 3
    sampler = paddle.io.DistributedBatchSampler(Squares(), 2, num_replicas=3, rank=2)
    assert list(sampler) == [[2, 5], [8, 1]]


# ---- files ----
def trained(tmp_path):
    x, y = static.data("x", [None, 3], "float32"), static.data("y", [None, 1], "float32")
    out = static.nn.fc(static.nn.batch_norm(static.nn.fc(x, 4)), 1)
    loss = paddle.mean(paddle.square(out - y))
    paddle.optimizer.Adam(0.1).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": np.random.RandomState(0).randn(8, 3).astype("float32"), "y": np.ones((8, 1), "float32")}

    def steps(n):
        return [float(exe.run(feed=feed, fetch_list=[loss])[0]) for _ in range(n)]
    return exe, feed, out, steps


def test_save_and_load_go_on_where_they_stopped(tmp_path):
    exe, feed, out, steps = trained(tmp_path)
    steps(3)
    static.save(static.default_main_program(), str(tmp_path / "model"))
    want = steps(3)
    with static.scope_guard(static.Scope()):
        exe.run(static.default_startup_program())
        static.load(static.default_main_program(), str(tmp_path / "model"), exe)
        assert steps(3) == want
    state = static.load_program_state(str(tmp_path / "model"))
    assert state["fc_0.w_0"].shape == (3, 4)


@pytest.mark.parametrize("filename", [None, "all"])
def test_persistables_of_fluid(tmp_path, filename):
    exe, feed, out, steps = trained(tmp_path)
    steps(2)
    fluid.io.save_persistables(exe, str(tmp_path / "dir"), static.default_main_program(), filename)
    want = steps(2)
    exe.run(static.default_startup_program())
    fluid.io.load_persistables(exe, str(tmp_path / "dir"), static.default_main_program(), filename)
    assert steps(2) == want


@pytest.mark.parametrize("old", [False, True], ids=["static", "fluid"])
def test_inference_model(tmp_path, old):
    exe, feed, out, steps = trained(tmp_path)
    steps(2)
    x = static.default_main_program().global_block().var("x")
    test = static.default_main_program().clone(for_test=True)
    want, = exe.run(test, feed={"x": feed["x"], "y": feed["y"]}, fetch_list=[out])
    path = str(tmp_path / "infer")
    if old:
        fluid.io.save_inference_model(path, ["x"], [out], exe)
    else:
        static.save_inference_model(path, [x], [out], exe)
    with static.scope_guard(static.Scope()):
        load = fluid.io.load_inference_model if old else static.load_inference_model
        program, names, targets = load(path, exe)
        assert names == ["x"]
        got, = exe.run(program, feed={names[0]: feed["x"]}, fetch_list=targets)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    with pytest.raises(paddle.FleetXError, match="inputs x"):
        static.save_inference_model(path, [], [out], exe)


def test_paddle_save_and_load(tmp_path):
    value = {"w": np.arange(6, dtype="float32").reshape(2, 3), "epoch": 3, "inner": {"b": np.array([1], "int64"), "s": "t"}}
    paddle.save(value, str(tmp_path / "f.pdparams"))
    got = paddle.load(str(tmp_path / "f.pdparams"))
    np.testing.assert_array_equal(got["w"], value["w"])
    assert got["epoch"] == 3 and got["inner"]["s"] == "t" and got["inner"]["b"].dtype == np.int64


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "bad.pdparams"
    path.write_bytes(b"\x80\x04not ours")
    with pytest.raises(paddle.FleetXError):
        paddle.load(str(path))


# ---- data sets ----
def test_data_sets_that_are_made_up_say_so(capfd, monkeypatch, tmp_path):
    from paddle.dataset import common
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    monkeypatch.setattr(common, "_announced", set())
    features, price = next(paddle.dataset.uci_housing.train()())
    assert features.shape == (13,) and price.shape == (1,)
    ids = paddle.dataset.imdb.word_dict()
    words, label = next(paddle.dataset.imdb.train(ids)())
    assert label == 0 and max(words) < len(ids)
    errors = capfd.readouterr().err
    assert errors.count("MADE-UP") == 2 and "uci_housing" in errors and "imdb" in errors


def test_real_files_are_read(monkeypatch, tmp_path, capfd):
    from paddle.dataset import common
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "uci_housing").mkdir()
    with gzip.open(tmp_path / "mnist" / "train-images-idx3-ubyte.gz", "wb") as f:
        f.write(struct.pack(">IIII", 0x803, 2, 28, 28) + bytes([0, 255] * 784))
    with gzip.open(tmp_path / "mnist" / "train-labels-idx1-ubyte.gz", "wb") as f:
        f.write(struct.pack(">II", 0x801, 2) + bytes([7, 3]))
    got = list(paddle.dataset.mnist.train()())
    assert [label for _, label in got] == [7, 3] and got[0][0][:2].tolist() == [-1.0, 1.0]
    (tmp_path / "uci_housing" / "housing.data").write_text("\n".join(" ".join(str(r * c) for c in range(14)) for r in range(10)))
    assert len(list(paddle.dataset.uci_housing.train()())) == 8
    assert "MADE-UP" not in capfd.readouterr().err


def write_matlab(path, **vectors):
    """Whole numbers below 256 as MATLAB saves them."""
    def element(kind, content):
        return struct.pack("<II", kind, len(content)) + content + b"\0" * (-len(content) % 8)
    data = b" " * 124 + b"\x00\x01IM"
    for name, values in vectors.items():
        matrix = element(14, element(6, struct.pack("<II", 9, 0)) + element(5, struct.pack("<ii", 1, len(values))) +
                         element(1, name.encode()) + element(2, bytes(values)))
        packed = zlib.compress(matrix)
        data += struct.pack("<II", 15, len(packed)) + packed
    path.write_bytes(data)


def test_real_flowers_are_read(tmp_path, monkeypatch, capfd):
    from paddle._native import native
    from paddle.dataset import common
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pictures = sorted(pathlib.Path(native.cached_flowers(classes=2, train=4, val=2, size=64)).glob("train/*.jpg"))
    folder = tmp_path / "flowers"
    folder.mkdir()
    with tarfile.open(folder / "102flowers.tgz", "w:gz") as archive:
        for i, picture in enumerate(pictures, 1):
            archive.add(picture, arcname=f"jpg/image_{i:05d}.jpg")
    write_matlab(folder / "imagelabels.mat", labels=[77, 5, 102, 1])
    write_matlab(folder / "setid.mat", tstid=[1, 3], trnid=[2], valid=[4])
    reader = paddle.dataset.flowers.train()
    train, again = list(reader()), list(reader())
    assert not any(np.array_equal(a[0], b[0]) for a in train for b in again)  # other crops in every pass
    assert sorted(label for _, label in train) == [76, 101] and train[0][0].shape == (3 * 224 * 224,)
    assert [label for _, label in paddle.dataset.flowers.test()()] == [4]
    assert [label for _, label in paddle.dataset.flowers.valid()()] == [0]
    assert "MADE-UP" not in capfd.readouterr().err and -130 < train[0][0].min() < 0 < train[0][0].max() < 160


def test_matlab_numbers(tmp_path):
    from paddle.dataset import matlab
    path = tmp_path / "labels.mat"
    write_matlab(path, labels=[5, 6, 7])
    assert matlab.load(str(path))["labels"].tolist() == [5, 6, 7]
    path.write_bytes(b"nothing")
    with pytest.raises(paddle.FleetXError):
        matlab.load(str(path))


def test_readers_that_cannot_be_read_are_named():
    x = static.data("x", [None, 4], "float32")
    with pytest.raises(TypeError, match="function that returns an iterator, not a list"):
        paddle.io.DataLoader.from_generator([x], 4).set_sample_generator([1, 2], 2)
    with pytest.raises(TypeError, match="function that returns an iterator, not a list"):
        paddle.io.DataLoader.from_generator([x], 4).set_batch_generator([1, 2])
    loader = paddle.io.DataLoader.from_generator([x], 4)
    loader.set_sample_list_generator(lambda: iter([[(np.ones(4),), (np.ones(3),)]]))
    with pytest.raises(paddle.InvalidArgumentError, match=r"feed 'x': its samples have different shapes, \[3\] and \[4\]"):
        list(loader())


def test_programs_are_saved_by_paddle_save(tmp_path):
    y = static.data("x", [None, 4], "float32") * 2
    path = str(tmp_path / "net.pdmodel")
    paddle.save(static.default_main_program(), path)
    loaded = paddle.load(path)
    out, = static.Executor().run(loaded, feed={"x": np.ones((1, 4), "float32")}, fetch_list=[y.name])
    assert (out == 2).all()
    with pytest.raises(ValueError, match="must end in .pdmodel"):
        paddle.save(static.default_main_program(), str(tmp_path / "net"))


def test_local_files(tmp_path):
    from paddle.distributed.fleet.utils.fs import FSFileExistsError, LocalFS
    fs, a, b = LocalFS(), str(tmp_path / "a"), str(tmp_path / "b")
    fs.mkdirs(a)
    fs.touch(b)
    assert fs.ls_dir(str(tmp_path)) == (["a"], ["b"]) and fs.is_dir(a) and fs.is_file(b)
    with pytest.raises(FSFileExistsError):
        fs.mv(a, b)
    fs.mv(a, b, overwrite=True)
    assert fs.list_dirs(str(tmp_path)) == ["b"]
    fs.delete(b)
    assert not fs.is_exist(b)


def test_inference_beside_training(tmp_path):
    from paddle.distributed.fleet.utils.ps_util import DistributedInfer
    y = static.nn.fc(static.data("x", [None, 2], "float32"), 1)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    fluid.io.save_persistables(exe, str(tmp_path))
    feed = {"x": np.ones((1, 2), "float32")}
    before, = exe.run(feed=feed, fetch_list=[y])
    with static.scope_guard(static.Scope()):
        infer = DistributedInfer(static.default_main_program(), static.default_startup_program())
        infer.init_distributed_infer_env(exe, dirname=str(tmp_path))
        after, = exe.run(infer.get_dist_infer_program(), feed=feed, fetch_list=[y])
    assert before == after


class _Waits(paddle.io.Dataset):
    """Every sample takes a moment in which others can run."""

    def __getitem__(self, index):
        time.sleep(0.02)
        return np.full([2], index, "float32"), paddle.io.get_worker_info().id if paddle.io.get_worker_info() else -1

    def __len__(self):
        return 64


def test_workers_of_a_loader_work_at_the_same_time():
    started = []
    loader = paddle.io.DataLoader(_Waits(), batch_size=4, num_workers=8, worker_init_fn=started.append)
    begin = time.time()
    batches = list(loader)
    seconds = time.time() - begin
    assert [int(b[0][0, 0]) for b in batches] == list(range(0, 64, 4))  # in order
    assert seconds < 0.9 and sorted(started) == list(range(8)) and {int(b[1][0]) for b in batches} <= set(range(8))
    assert paddle.io.get_worker_info() is None
    alone = [b[1][0] for b in paddle.io.DataLoader(_Waits(), batch_size=32)]
    assert alone == [-1, -1]


def test_an_error_in_a_worker_of_a_loader_arrives():
    class Fails(paddle.io.Dataset):
        def __getitem__(self, index):
            return 1 / (index - 5)

        def __len__(self):
            return 8
    with pytest.raises(ZeroDivisionError):
        list(paddle.io.DataLoader(Fails(), batch_size=2, num_workers=3))


def test_a_clone_reads_from_the_same_loader():
    x = static.data("x", [None, 1], "float32")
    y = x * 2
    loader = paddle.io.DataLoader.from_generator([x], 4, iterable=False)
    loader.set_batch_generator(lambda: ([np.full((1, 1), i, "float32")] for i in range(3)))
    test, exe = static.default_main_program().clone(for_test=True), static.Executor()
    loader.start()
    got = [float(exe.run(program, fetch_list=[y.name])[0]) for program in (test, static.default_main_program(), test)]
    assert got == [0, 2, 4]
    with pytest.raises(fluid.core.EOFException):
        exe.run(test, fetch_list=[y.name])


def test_an_inference_model_needs_targets(tmp_path):
    x = static.data("x", [None, 3], "float32")
    out = static.nn.fc(x, 2)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    for feeds, targets, word in (([], [], "target_vars"), (["x"], [], "target_vars"), (["x"], ["out"], "target_vars"),
                                 ([x], [out], "feeded_var_names"), ([], [out], "need the inputs x")):
        with pytest.raises(ValueError, match=word):
            fluid.io.save_inference_model(str(tmp_path / "m"), feeds, targets, exe)
    with pytest.raises(ValueError, match="fetch_vars"):
        static.save_inference_model(str(tmp_path / "m"), [], [], exe)
    assert fluid.io.save_inference_model(str(tmp_path / "m"), "x", out, exe) == [out.name]
    fluid.io.save_inference_model(str(tmp_path / "only"), ["x"], [out], exe, program_only=True)
    assert [p.name for p in (tmp_path / "only").iterdir()] == ["__model__"]
    program, feeds, fetches = static.load_inference_model(str(tmp_path / "m"), exe, model_filename="__model__",
                                                          params_filename="__params__")
    assert feeds == ["x"] and exe.run(program, feed={"x": np.ones((2, 3), "float32")}, fetch_list=fetches)[0].shape == (2, 2)


def test_chosen_variables_are_saved_and_loaded(tmp_path):
    x = static.data("x", [None, 3], "float32")
    static.nn.fc(x, 2)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    weight = next(p for p in static.default_main_program().all_parameters() if p.name.endswith("w_0"))
    tensor = static.global_scope().find_var(weight.name).get_tensor()
    before = np.array(tensor.numpy())
    static.save_vars(exe, str(tmp_path), vars=[weight])
    static.save_vars(exe, str(tmp_path), predicate=lambda v: v.persistable, filename="all")
    for how in ({"vars": [weight]}, {"predicate": lambda v: v.name == weight.name, "filename": "all"}):
        tensor.set(np.zeros_like(before))
        static.load_vars(exe, str(tmp_path), **how)
        np.testing.assert_array_equal(tensor.numpy(), before)
